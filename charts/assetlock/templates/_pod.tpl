{{/* The parts of a pod that both processes have; called with (list $ .Values.controller "controller"). */}}

{{- define "assetlock.image" -}}
{{- $image := mergeOverwrite (deepCopy (index . 0).Values.image) (index . 1).image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default (index . 0).Chart.AppVersion }}
{{- end }}
{{- end }}

{{- define "assetlock.podMetadata" -}}
labels:
  {{- include "assetlock.selector" (list (index . 0) (index . 2)) | nindent 2 }}
  {{- with (index . 0).Values.commonLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- with (index . 1).podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with (index . 1).podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "assetlock.podSpec" -}}
serviceAccountName: {{ (index . 1).serviceAccount.name }}
{{- with (index . 0).Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml (index . 1).podSecurityContext | nindent 2 }}
terminationGracePeriodSeconds: {{ (index . 1).terminationGracePeriodSeconds }}
{{- with (index . 1).priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- range $field := list "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" }}
{{- with index $ 1 $field }}
{{ $field }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{- define "assetlock.container" -}}
image: {{ include "assetlock.image" . }}
imagePullPolicy: {{ (index . 1).image.pullPolicy | default (index . 0).Values.image.pullPolicy }}
securityContext:
  {{- toYaml (index . 1).securityContext | nindent 2 }}
resources:
  {{- toYaml (index . 1).resources | nindent 2 }}
livenessProbe:
  {{- toYaml (index . 1).livenessProbe | nindent 2 }}
readinessProbe:
  {{- toYaml (index . 1).readinessProbe | nindent 2 }}
{{- end }}

{{- define "assetlock.env" -}}
- name: ASSETLOCK_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: ASSETLOCK_DEFAULT_TTL
  value: {{ (index . 0).Values.settings.defaultTTL | quote }}
- name: ASSETLOCK_LONGEST_TTL
  value: {{ (index . 0).Values.settings.longestTTL | quote }}
- name: ASSETLOCK_SKEW
  value: {{ (index . 0).Values.settings.skew | quote }}
{{- with (index . 1).extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}
