// SPDX-License-Identifier: Apache-2.0

// Command codegen does the steps of hack/codegen.sh that need a parser, a graph or a schema.
// Its go.mod pins the generators that the script runs. All commands but copy work on the copy
// of the sources that is the working directory.
//
//	codegen copy ROOT COPY         copies what pkg/apis imports from its module, checks the packages, prints the APIs
//	codegen plurals                checks the deepcopy functions, prints the plurals of the CustomResourceDefinitions
//	codegen missing PACKAGE...     prints the packages, except these, whose OpenAPI definitions are missing
//	codegen schemas                writes the JSON schemas of the CustomResourceDefinitions
//	codegen fakes                  makes the fake clientset know the plurals
//	codegen check                  compares clients and CustomResourceDefinitions, and validates these
//	codegen explain LOG            prints what a generator that failed has written, and what helps
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/mod/modfile"
)

func main() {
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintf(os.Stderr, "codegen: %s\n", strings.TrimSuffix(line, "\n"))
		}
		os.Exit(1)
	}
}

func run(command string, operands []string) error {
	switch command {
	case "explain":
		return explain(operands[0])
	case "copy":
		if err := errors.Join(copyImports(operands[0], operands[1]), os.Chdir(operands[1])); err != nil {
			return err
		}
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		return err
	}
	module := modfile.ModulePath(mod)
	packages, err := readPackages("pkg/apis")
	if err != nil {
		return err
	}
	crds, err := readCRDs()
	if err != nil {
		return err
	}
	switch command {
	case "copy":
		for _, p := range packages {
			if len(p.kinds) > 0 {
				fmt.Println(p.dir)
			}
		}
		return checkPackages(packages, module)
	case "plurals":
		exceptions, err := pluralExceptions(crds)
		fmt.Println(strings.Join(exceptions, ","))
		return errors.Join(err, checkDeepCopies(packages))
	case "missing":
		missing, err := missingDefinitions("pkg/generated/openapi/zz_generated.openapi.go", module, operands)
		fmt.Println(strings.Join(missing, " "))
		return err
	case "schemas":
		return writeSchemas(crds)
	case "fakes":
		return correctFakes(crds)
	case "check":
		return check(packages, crds, module)
	}
	return fmt.Errorf("the command %q is unknown", command)
}
