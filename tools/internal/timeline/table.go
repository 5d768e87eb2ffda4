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

// The picture as text.

package timeline

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteText writes the table of the picture's writes as text.
func (p *Picture) WriteText(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, p.title+"\n\nPANEL\tMS\tACTOR\tVERB\tOBJECT\tRESULT\tAFTER")
	for _, e := range p.entries {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.Panel, e.Milliseconds, e.Actor, e.Verb, e.Object, e.Result, e.Cause)
	}
	if more := p.writes - len(p.entries); more > 0 {
		fmt.Fprintf(table, "And %d more.\n", more)
	}
	return table.Flush()
}
