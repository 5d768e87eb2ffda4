// SPDX-License-Identifier: Apache-2.0

// Command chart generates the Helm chart in artifacts/chart. The chart installs the
// objects that kustomize renders from artifacts/deploy and artifacts/monitoring. At the
// places that values.go declares, the value in the manifest becomes a value of the chart,
// with the manifest's value as its default.
//
//	make chart
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

func main() {
	root := flag.String("root", "../..", "Root of the repository.")
	flag.Parse()
	if err := run(*root); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	files, err := generate(root)
	if err != nil {
		return err
	}
	return replaceFiles(filepath.Join(root, chartFolder), files)
}

// generate returns the files of the chart by their paths in its folder.
func generate(root string) (map[string]string, error) {
	all, err := readManifests(root)
	if err != nil {
		return nil, err
	}
	c := &chart{manifests: all, defaults: map[string]any{}}
	if c.kubernetes, err = oldestKubernetes(root); err != nil {
		return nil, err
	}
	if err := c.readDefaults(); err != nil {
		return nil, err
	}
	files, err := c.templates()
	if err != nil {
		return nil, err
	}
	for name, write := range map[string]func() (string, error){
		"Chart.yaml": c.chartFile, "values.yaml": c.valuesFile, "values.schema.json": c.schemaFile,
		"README.md": c.readmeFile, "templates/_names.tpl": c.namesFile, "templates/NOTES.txt": c.notesFile,
	} {
		if files[name], err = write(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return files, nil
}

var needsKubernetes = regexp.MustCompile(`needs Kubernetes (1\.\d+) or newer`)

// oldestKubernetes returns the oldest supported release, which docs/operations.md names.
func oldestKubernetes(root string) (string, error) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "operations.md"))
	if err != nil {
		return "", err
	}
	match := needsKubernetes.FindSubmatch(page)
	if match == nil {
		return "", fmt.Errorf("docs/operations.md does not say %s", needsKubernetes)
	}
	return string(match[1]), nil
}

// replaceFiles writes the files into a folder and removes all others.
func replaceFiles(folder string, files map[string]string) error {
	old, err := readFiles(folder)
	if err != nil {
		return err
	}
	for name := range old {
		if _, ok := files[name]; !ok {
			if err := os.Remove(filepath.Join(folder, filepath.FromSlash(name))); err != nil {
				return err
			}
		}
	}
	for name, content := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// readFiles returns the files below a folder. If the folder does not exist, there are
// none.
func readFiles(folder string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		files[filepath.ToSlash(name)] = string(content)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return files, nil
	}
	return files, err
}
