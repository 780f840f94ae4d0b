{{/* The Deployment of a program with its account, budget and policy.
     Argument: dict of root, p (pumice.program), args, ports, volumes, annotations, env, schedulerName. */}}
{{- define "pumice.workload" -}}
{{- $root := .root -}}
{{- $p := .p -}}
{{- $replicas := $p.c.replicas | default 1 | int -}}
{{- $labels := include "pumice.labels" (list $root $p.key $p.app) -}}
{{- if $p.c.serviceAccount.create }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $p.account }}
  namespace: {{ $p.namespace }}
  labels:
    {{- $labels | nindent 4 }}
  {{- with $p.c.serviceAccount.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
---
{{- end }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $p.name }}
  namespace: {{ $p.namespace }}
  labels:
    {{- $labels | nindent 4 }}
    {{- with $p.c.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  replicas: {{ $replicas }}
  {{- with .strategy }}
  strategy:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  selector:
    matchLabels:
      app: {{ $p.app }}
      app.kubernetes.io/instance: {{ $root.Release.Name }}
  template:
    metadata:
      labels:
        {{- $labels | nindent 8 }}
        {{- with merge (dict) ($p.c.podLabels | default dict) $p.v.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with merge (dict) (.annotations | default dict) ($p.c.podAnnotations | default dict) $p.v.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: {{ $p.account }}
      automountServiceAccountToken: true
      {{- with .schedulerName }}
      schedulerName: {{ . }}
      {{- end }}
      priorityClassName: {{ $p.c.priorityClassName | default $p.v.priorityClassName }}
      terminationGracePeriodSeconds: 30
      {{- with $p.v.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        {{- toYaml ($p.c.podSecurityContext | default $p.v.podSecurityContext) | nindent 8 }}
      {{- include "pumice.placement" $p | nindent 6 }}
      {{- with $p.c.topologySpreadConstraints | default $p.v.topologySpreadConstraints }}
      topologySpreadConstraints:
        {{- toYaml . | nindent 8 }}
      {{- else }}
      {{- if gt $replicas 1 }}
      topologySpreadConstraints:
      - topologyKey: kubernetes.io/hostname
        maxSkew: 1
        whenUnsatisfiable: ScheduleAnyway
        labelSelector:
          matchLabels:
            app: {{ $p.app }}
            app.kubernetes.io/instance: {{ $root.Release.Name }}
      {{- end }}
      {{- end }}
      containers:
      - name: {{ $p.program }}
        image: {{ include "pumice.image" (dict "v" $p.v "version" $root.Chart.AppVersion) | quote }}
        imagePullPolicy: {{ $p.v.image.pullPolicy }}
        command: [{{ $p.program }}]
        args:
        {{- range .args }}
        - {{ . | quote }}
        {{- end }}
        {{- with $p.c.featureGates }}
        - {{ printf "--feature-gates=%s" . | quote }}
        {{- end }}
        - -v={{ $p.c.logLevel }}
        {{- range $p.c.extraArgs }}
        - {{ . | quote }}
        {{- end }}
        env:
        - name: POD_NAME
          valueFrom: {fieldRef: {fieldPath: metadata.name}}
        - name: POD_NAMESPACE
          valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
        {{- with .env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- with .ports }}
        ports:
        {{- range $name, $port := . }}
        - name: {{ $name }}
          containerPort: {{ $port | int }}
        {{- end }}
        startupProbe:
          httpGet: {path: /livez, port: health}
          periodSeconds: 2
          failureThreshold: 60
        livenessProbe:
          httpGet: {path: /livez, port: health}
          periodSeconds: 10
          timeoutSeconds: 5
          failureThreshold: 6
        readinessProbe:
          httpGet: {path: /readyz, port: health}
          periodSeconds: 5
          timeoutSeconds: 5
        {{- end }}
        {{- with $p.c.resources }}
        resources:
          {{- toYaml . | nindent 10 }}
        {{- end }}
        securityContext:
          {{- toYaml ($p.c.securityContext | default $p.v.securityContext) | nindent 10 }}
        volumeMounts:
        {{- range $name, $volume := .volumes }}
        - name: {{ $name }}
          mountPath: {{ $volume.path }}
          readOnly: true
        {{- end }}
        - name: tmp
          mountPath: /tmp
      volumes:
      {{- range $name, $volume := .volumes }}
      - name: {{ $name }}
        {{- toYaml $volume.source | nindent 8 }}
      {{- end }}
      - name: tmp
        emptyDir:
          sizeLimit: 512Mi
{{- if and $p.c.podDisruptionBudget (gt $replicas 1) }}
{{- if $p.c.podDisruptionBudget.enabled }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $p.name }}
  namespace: {{ $p.namespace }}
  labels:
    {{- $labels | nindent 4 }}
spec:
  {{- with $p.c.podDisruptionBudget.minAvailable }}
  minAvailable: {{ . }}
  {{- else }}
  maxUnavailable: {{ $p.c.podDisruptionBudget.maxUnavailable }}
  {{- end }}
  selector:
    matchLabels:
      app: {{ $p.app }}
      app.kubernetes.io/instance: {{ $root.Release.Name }}
{{- end }}
{{- end }}
{{- if $p.v.networkPolicy.enabled }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ $p.name }}
  namespace: {{ $p.namespace }}
  labels:
    {{- $labels | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      app: {{ $p.app }}
      app.kubernetes.io/instance: {{ $root.Release.Name }}
  policyTypes: [Ingress]
  {{- with .ports }}
  ingress:
  - ports:
    {{- range $name, $port := . }}
    - port: {{ $name }}
    {{- end }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* The Service of a program. Argument: dict of root, p, suffix, ports (list of name, port, target). */}}
{{- define "pumice.service" -}}
{{- $p := .p -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ $p.name }}-service
  namespace: {{ $p.namespace }}
  labels:
    {{- include "pumice.labels" (list .root $p.key $p.app) | nindent 4 }}
spec:
  {{- with $p.v.service.ipFamilyPolicy }}
  ipFamilyPolicy: {{ . }}
  {{- end }}
  {{- with $p.v.service.ipFamilies }}
  ipFamilies:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  selector:
    app: {{ $p.app }}
    app.kubernetes.io/instance: {{ .root.Release.Name }}
  ports:
    {{- toYaml .ports | nindent 4 }}
{{- end -}}

{{/* A ConfigMap with one file. Argument: dict of root, p, name, file, text. */}}
{{- define "pumice.config" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .name }}
  namespace: {{ .p.namespace }}
  labels:
    {{- include "pumice.labels" (list .root .p.key "") | nindent 4 }}
data:
  {{ .file }}: |
    {{- .text | default (.root.Files.Get (printf "files/conf/%s" .file)) | nindent 4 }}
{{- end -}}

{{/* The roles of a file, for this release. Argument: dict of root, p, file, lease. */}}
{{- define "pumice.rights" -}}
{{- $p := .p -}}
{{- $labels := include "pumice.labels" (list .root $p.key "") | fromYaml -}}
{{- $text := .root.Files.Get (printf "files/rbac/%s.yaml" .file)
      | replace "volcano-admission-secret" $p.v.admission.secretName
      | replace "volcano-admission-service-" (printf "%s-" $p.v.admission.configurationPrefix)
      | replace "volcano-controller-configmap" (printf "%s-controller-configmap" $p.full)
      | replace "name: vc-extender" (printf "name: %s" $p.name) -}}
{{- range $n, $document := regexSplit "(?m)^---$" $text -1 }}
{{- $obj := fromYaml $document }}
{{- if has $obj.kind (list "ClusterRole" "ClusterRoleBinding" "Role" "RoleBinding") }}
{{- $_ := set $obj.metadata "name" ($obj.metadata.name | replace "volcano-" (printf "%s-" $p.full)) }}
{{- $_ := set $obj.metadata "labels" $labels }}
{{- if hasKey $obj.metadata "namespace" }}{{ $_ := set $obj.metadata "namespace" $p.namespace }}{{ end }}
{{- if hasKey $obj "roleRef" }}
{{- $_ := set $obj.roleRef "name" ($obj.roleRef.name | replace "volcano-" (printf "%s-" $p.full)) }}
{{- $_ := set $obj "subjects" (list (dict "kind" "ServiceAccount" "name" $p.account "namespace" $p.namespace)) }}
{{- end }}
{{- range $rule := $obj.rules }}
{{- if and (has "leases" $rule.resources) (hasKey $rule "resourceNames") }}{{ $_ := set $rule "resourceNames" (list $p.name) }}{{ end }}
{{- end }}
---
{{ toYaml $obj }}
{{- end }}
{{- end }}
{{- end -}}
