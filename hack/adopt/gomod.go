/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package main

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// rewriteGoMod is a go.mod with the new module path: as its own, as a requirement, and in replacements. Lines stay where
// they are, for go mod tidy to sort.
func rewriteGoMod(name string, data []byte, to string) ([]byte, error) {
	file, err := modfile.Parse(name, data, nil)
	if err != nil {
		return nil, err
	}
	if file.Module == nil {
		return nil, fmt.Errorf("%s has no module line", name)
	}
	rename(file.Module.Syntax, file.Module.Mod.Path, to)
	for _, require := range file.Require {
		if i := rename(require.Syntax, require.Mod.Path, to); i >= 0 {
			require.Syntax.Token[i+1] = versionFor(require.Syntax.Token[i])
		}
	}
	for _, replace := range file.Replace {
		rename(replace.Syntax, replace.Old.Path, to)
	}
	// Kubernetes' go.mod replaces this one, and requires it nowhere.
	if err := file.DropReplace("k8s.io/sample-controller", ""); err != nil {
		return nil, err
	}
	file.SortBlocks()
	file.Cleanup()
	return file.Format()
}

// rename puts the new path in the place of a path of the sample in a line, and says which word of the line it is; -1 if
// the path is somebody else's.
func rename(line *modfile.Line, old, to string) int {
	rest, ok := strings.CutPrefix(old, sample.Module)
	if !ok || rest != "" && rest[0] != '/' {
		return -1
	}
	i := slices.Index(line.Token, modfile.AutoQuote(old))
	line.Token[i] = modfile.AutoQuote(to + rest)
	return i
}

// versionFor is a version of a module that is replaced by a folder: it has to be of the path's major version.
func versionFor(path string) string {
	_, major, _ := module.SplitPathVersion(path)
	if major = module.PathMajorPrefix(major); major == "" {
		major = "v0"
	}
	return module.ZeroPseudoVersion(major)
}
