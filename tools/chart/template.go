// SPDX-License-Identifier: Apache-2.0

// Templates: manifests in which marks stand for template expressions until the text is
// written.

package main

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// template is a manifest that becomes a template. Marks stand for text that is not YAML.
type template struct {
	node  *yaml.Node
	texts []string
}

var (
	inlineMark = regexp.MustCompile(`INLINE-([0-9]+)-MARK`)
	lineMark   = regexp.MustCompile(`(?m)^( *)(?:- )?LINES-([0-9]+)-MARK(?:: null)?$`)
)

// inline returns a mark for text within a scalar.
func (t *template) inline(text string) string {
	t.texts = append(t.texts, text)
	return "INLINE-" + strconv.Itoa(len(t.texts)-1) + "-MARK"
}

// lines returns a mark for lines of a mapping or a sequence. In these lines, INDENT
// stands for their indentation, and DEEPER for that of the level below.
func (t *template) lines(text string) string {
	t.texts = append(t.texts, text)
	return "LINES-" + strconv.Itoa(len(t.texts)-1) + "-MARK"
}

// set replaces a scalar by an expression.
func (t *template) set(node *yaml.Node, expression string) {
	*node = *scalar(t.inline("{{ " + expression + " }}"))
}

// addLines adds lines to a mapping or a sequence.
func (t *template) addLines(to *yaml.Node, text string) {
	mark := scalar(t.lines(text))
	to.Content = append(to.Content, mark)
	if to.Kind == yaml.MappingNode {
		to.Content = append(to.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"})
	}
}

// text returns the text of the template.
func (t *template) text() (string, error) {
	plain, err := toYAML(t.node)
	if err != nil {
		return "", err
	}
	// Braces in the manifests are for Prometheus and Grafana: escape them.
	plain = strings.ReplaceAll(plain, "{{", `{{ "{{" }}`)
	plain = lineMark.ReplaceAllStringFunc(plain, func(line string) string {
		match := lineMark.FindStringSubmatch(line)
		return t.indented(match[2], match[1])
	})
	return inlineMark.ReplaceAllStringFunc(plain, func(mark string) string {
		return t.of(inlineMark.FindStringSubmatch(mark)[1])
	}), nil
}

func (t *template) of(number string) string {
	i, _ := strconv.Atoi(number) // only digits match
	return t.texts[i]
}

func (t *template) indented(number, indent string) string {
	text := strings.NewReplacer("INDENT", strconv.Itoa(len(indent)), "DEEPER", strconv.Itoa(len(indent)+2)).Replace(t.of(number))
	return indent + strings.ReplaceAll(text, "\n", "\n"+indent)
}

// toYAML encodes a value as YAML, without breaking lines.
func toYAML(value any) (string, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(value); err != nil {
		return "", err
	}
	err := encoder.Close()
	return out.String(), err
}
