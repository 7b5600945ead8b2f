{{/* What hooks have in common; those of weight 0 are there before the one of weight 1 runs. */}}

{{- define "assetlock.uninstallHook" -}}
helm.sh/hook: pre-delete
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{- define "assetlock.testHook" -}}
helm.sh/hook: test
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{/* Called with (list $ "the name of the ServiceAccount"). */}}
{{- define "assetlock.hookPodSpec" -}}
{{- $account := dict "serviceAccount" (dict "name" (index . 1)) "terminationGracePeriodSeconds" 5 -}}
{{- include "assetlock.podSpec" (list (index . 0) (mergeOverwrite (deepCopy (index . 0).Values.controller) $account)) }}
restartPolicy: Never
volumes:
  - name: tmp
    emptyDir:
      medium: Memory
      sizeLimit: 16Mi
{{- end }}

{{- define "assetlock.hookContainer" -}}
image: {{ include "assetlock.image" (list . .Values.controller) }}
imagePullPolicy: {{ .Values.controller.image.pullPolicy | default .Values.image.pullPolicy }}
securityContext:
  {{- toYaml .Values.controller.securityContext | nindent 2 }}
resources:
  {{- toYaml .Values.controller.resources | nindent 2 }}
env:
  - name: ASSETLOCK_NAMESPACE
    valueFrom:
      fieldRef:
        fieldPath: metadata.namespace
volumeMounts:
  - name: tmp
    mountPath: /tmp
{{- end }}
