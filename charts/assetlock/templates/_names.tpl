{{- define "assetlock.labels" -}}
app.kubernetes.io/name: assetlock
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* By these a Deployment, a Service or a NetworkPolicy knows its pods; called with (list $ "controller"). */}}
{{- define "assetlock.selector" -}}
app.kubernetes.io/name: assetlock
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "assetlock.controllerUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ .Values.controller.serviceAccount.name }}
{{- end }}

{{- define "assetlock.admissionUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ .Values.admission.serviceAccount.name }}
{{- end }}

{{/* The Secret that the webhooks' certificate is read from, where the operator does not keep its own. */}}
{{- define "assetlock.certificateSecret" -}}
{{- if eq .Values.certificates.source "CertManager" -}}
assetlock-admission-cert
{{- else -}}
{{ required "certificates.source Secret needs certificates.secretName" .Values.certificates.secretName }}
{{- end }}
{{- end }}

{{/* The Secret with the webhooks' certificate and its CA, whoever keeps it. */}}
{{- define "assetlock.servingSecret" -}}
{{- if eq .Values.certificates.source "Operator" -}}
assetlock-admission-tls
{{- else -}}
{{ include "assetlock.certificateSecret" . }}
{{- end }}
{{- end }}

{{/* Whom the API server trusts, where that is known now: otherwise the operator or cert-manager writes it. */}}
{{- define "assetlock.caBundle" -}}
{{- if and (eq .Values.certificates.source "Secret") .Values.certificates.caBundle }}
      caBundle: {{ .Values.certificates.caBundle | b64enc }}
{{- end }}
{{- end }}

{{- /* CEL strings: what the words of identities look like, and what breaks a line or fools a terminal. */ -}}
{{- define "assetlock.podUID" -}}
'^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'
{{- end }}

{{- define "assetlock.credentialID" -}}
'^[0-9A-Za-z]+=[!-~]{1,256}$'
{{- end }}

{{- define "assetlock.control" -}}
r'[\pC\x{2028}\x{2029}]'
{{- end }}
