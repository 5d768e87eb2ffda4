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
	"encoding/json"
	"fmt"
	"strings"
)

func (c *chart) readmeFile() (string, error) {
	var table strings.Builder
	for _, v := range values {
		initial, err := json.Marshal(c.defaults[v.name])
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&table, "| `%s` | `%s` | %s |\n", v.name, initial, v.about)
	}
	return strings.NewReplacer("PROGRAM", program, "KUBERNETES", c.kubernetes, "PODSECURITY", strings.Join(c.podSecurity, " "),
		"TABLE\n", table.String(), "'''", "```", "''", "`").Replace(readme), nil
}

const readme = `# Helm chart

Made by [tools/chart](../../tools/chart) (''make chart'') of what kustomize renders from [artifacts/deploy](../deploy) and
[artifacts/monitoring](../monitoring). With the default values and the release PROGRAM in the namespace PROGRAM it
installs the same objects but for the Namespace and Helm's labels, of which Pods and selectors have the release's: ''make test-chart'' compares the two. It needs
Kubernetes KUBERNETES or newer.

<!-- run: skip="Helm is not installed here; make test-chart does the same by its library" -->
'''sh
helm install PROGRAM artifacts/chart --namespace=PROGRAM --create-namespace \
  --set image.repository=registry.example.com/team/PROGRAM,image.tag=v1.2.3
kubectl label namespace PROGRAM PODSECURITY
'''

The labels hold the namespace to the Pod Security profile that the kustomize manifests give it; Helm makes it without.

- **Names.** Objects are called after the release. Those in no namespace bear the release's namespace in their name,
  unless both are called the same, so releases in several namespaces do not meet. The CustomResourceDefinition is the one
  thing that all share: a second release sets ''crds.install=false''. Set ''watchNamespace'' in both, or both look after all Foos.
- **Upgrade.** ''helm upgrade'' upgrades the CustomResourceDefinition too: it is a template. ''helm rollback'' takes it back.
- **Uninstall.** The CustomResourceDefinition stays (''helm.sh/resource-policy: keep''), and so do all Foos and their Deployments.
  A release of another name or namespace takes it over with ''--take-ownership'', or leaves it with ''crds.install=false''.
- **From kustomize.** A Deployment's selector can't be changed, and the chart's has the release in it: delete the controller's
  Deployment, then ''helm install --take-ownership --force-conflicts'' (Helm 4). Foos' Deployments go on running.

## Values

A value that is not here is refused, and so is one of the wrong type: values.schema.json.

| value | default | meaning |
|---|---|---|
TABLE
`

func (c *chart) notesFile() (string, error) {
	return strings.NewReplacer("PROGRAM", program, "PODSECURITY", strings.Join(c.podSecurity, " ")).Replace(notes), nil
}

const notes = `{{ include "PROGRAM.fullname" . }} looks after the Foos of {{ with .Values.watchNamespace }}the namespace {{ . }}{{ else }}all namespaces{{ end }}.

Its Pods:
  kubectl get pods --namespace {{ .Release.Namespace }} --selector app.kubernetes.io/name=PROGRAM,app.kubernetes.io/instance={{ .Release.Name }}
Hold its namespace to the Pod Security profile that they pass:
  kubectl label namespace {{ .Release.Namespace }} PODSECURITY
`
