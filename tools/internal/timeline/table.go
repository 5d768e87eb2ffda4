// SPDX-License-Identifier: Apache-2.0

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
