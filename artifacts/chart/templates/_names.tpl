{{- /* Made by tools/chart of what kustomize renders: change artifacts/deploy, then make chart. */ -}}

{{- define "sample-controller.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- $name = ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- $name = .Values.fullnameOverride | default $name | replace "." "-" | trunc 55 | trimSuffix "-" -}}
{{- if not (regexMatch "^[a-z]" $name) -}}
{{- fail (printf "%s can't be the name of a Service, which begins with a letter: set fullnameOverride" $name) -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{- /* What is in no namespace has the release's in its name, after a dot, which is in no other name here. */ -}}
{{- define "sample-controller.ofNamespace" -}}
{{- if ne (include "sample-controller.fullname" .) .Release.Namespace }}.{{ .Release.Namespace }}{{ end -}}
{{- end -}}

{{- define "sample-controller.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (include "sample-controller.fullname" .) -}}
{{- end -}}

{{- define "sample-controller.labels" -}}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" | quote }}
{{- end -}}

{{- define "sample-controller.image" -}}
{{- .Values.image.repository -}}
{{- if or .Values.image.tag (not .Values.image.digest) }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end -}}
{{- with .Values.image.digest }}@{{ . }}{{ end -}}
{{- end -}}
