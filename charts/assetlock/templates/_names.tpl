{{- define "assetlock.labels" -}}
app.kubernetes.io/name: assetlock
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "assetlock.controllerUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ .Values.controller.serviceAccount.name }}
{{- end }}

{{- define "assetlock.admissionUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ .Values.admission.serviceAccount.name }}
{{- end }}
