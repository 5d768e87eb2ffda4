// SPDX-License-Identifier: Apache-2.0

// The picture as an HTML page.

package timeline

import (
	"bytes"
	"html/template"
	"io"
)

// WriteHTML writes the picture and a table of its writes as a self-contained page.
func (p *Picture) WriteHTML(w io.Writer) error {
	var picture bytes.Buffer
	if err := p.WriteSVG(&picture); err != nil {
		return err
	}
	parsed, err := template.New("page").Parse(page)
	if err != nil {
		return err
	}
	return parsed.Execute(w, struct {
		Title   string
		Picture template.HTML
		Writes  []Entry
		More    int
	}{p.title, template.HTML(picture.String()), p.entries, p.writes - len(p.entries)})
}

const page = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>{{.Title}}</title>
<style>
body{margin:0 auto;padding:8px;max-width:1600px;font:14px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;background:#fff;color:#1f2328}
body>svg{display:block;width:100%;height:auto}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%}
th,td{padding:3px 8px;border-bottom:1px solid #d1d9e0;text-align:left;vertical-align:top;overflow-wrap:break-word}
th,td:nth-child(2),td:nth-child(4),td:nth-child(6){white-space:nowrap}
td:nth-child(2){text-align:right;font-variant-numeric:tabular-nums}
@media (prefers-color-scheme:dark){body{background:#0d1117;color:#f0f6fc}th,td{border-color:#3d444d}}
</style>
</head>
<body>
{{.Picture}}
<details>
<summary>The same as a table</summary>
<div class="wide"><table>
<thead><tr><th>panel</th><th>ms</th><th>actor</th><th>verb</th><th>object</th><th>result</th><th>after</th></tr></thead>
<tbody>
{{range .Writes}}<tr><td>{{.Panel}}</td><td>{{.Milliseconds}}</td><td>{{.Actor}}</td><td>{{.Verb}}</td><td>{{.Object}}</td><td>{{.Result}}</td><td>{{.Cause}}</td></tr>
{{end}}</tbody>
</table></div>
{{with .More}}<p>And {{.}} more.</p>
{{end}}</details>
</body>
</html>
`
