{{- /* A Service's name has at most 63 characters, and the longest suffix here, -metrics, has 8. */ -}}
{{- define "sample-controller.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- $name = ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- $name = .Values.fullnameOverride | default $name | replace "." "-" | trunc 55 | trimSuffix "-" -}}
{{- if not (regexMatch "^[a-z]" $name) -}}
{{- fail (printf "%s can't be the name of a Service, which begins with a letter: set fullnameOverride" $name) -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{- /* The name of a cluster-scoped object ends with a dot and the release's namespace. No other name here has a dot. */ -}}
{{- define "sample-controller.ofNamespace" -}}
{{- if ne (include "sample-controller.fullname" .) .Release.Namespace }}.{{ .Release.Namespace }}{{ end -}}
{{- end -}}

{{- define "sample-controller.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (include "sample-controller.fullname" .) -}}
{{- end -}}

{{- define "sample-controller.labels" -}}
app.kubernetes.io/name: sample-controller
{{ include "sample-controller.helmLabels" . }}
{{- end -}}

{{- define "sample-controller.helmLabels" -}}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" | quote }}
{{- end -}}

{{- define "sample-controller.image" -}}
{{- .Values.image.repository -}}
{{- if or .Values.image.tag (not .Values.image.digest) }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end -}}
{{- with .Values.image.digest }}@{{ . }}{{ end -}}
{{- end -}}

{{- /* The release's name for a cluster-scoped object of files, for (list . NAME). */ -}}
{{- define "sample-controller.clusterName" -}}
{{- include "sample-controller.fullname" (first .) }}{{ last . | trimPrefix "sample-controller" }}{{ include "sample-controller.ofNamespace" (first .) -}}
{{- end -}}

{{- /* The manifest of a kind and name in a file of files, for (list . FILE KIND NAME). */ -}}
{{- define "sample-controller.manifest" -}}
{{- $wanted := . -}}
{{- range splitList "\n---\n" ((first .).Files.Get (printf "files/%s" (index . 1))) -}}
{{- $object := fromYaml . -}}
{{- if and (eq $object.kind (index $wanted 2)) (eq $object.metadata.name (index $wanted 3)) }}{{ toYaml $object }}{{ end -}}
{{- end -}}
{{- end -}}

{{- /* A file of files with the values of monitoring, for (list . FILE). hack/update-monitoring.sh makes the same replacements. */ -}}
{{- define "sample-controller.monitoring" -}}
{{- $monitoring := (first .).Values.monitoring -}}
{{- $text := (first .).Files.Get (printf "files/%s" (last .))
  | replace "https://example.com/sample-controller/blob/main/docs/operations.md" $monitoring.runbooks -}}
{{- regexReplaceAll "([(]|, |[{]|[.])cluster([,)]|=~|[}]| )" $text (printf "${1}%s${2}" $monitoring.clusterLabel) -}}
{{- end -}}
