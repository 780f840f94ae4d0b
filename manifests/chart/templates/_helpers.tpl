{{/* What names begin with. */}}
{{- define "pumice.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- (contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name)) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The values, with those of Volcano's chart in their places (files/mapping.yaml). YAML. */}}
{{- define "pumice.values" -}}
{{- $values := .Values | toYaml | fromYaml -}}
{{- range $from, $rule := .Files.Get "files/mapping.yaml" | fromYaml -}}
  {{- $section := get $values (splitList "." $from | first) | default dict -}}
  {{- $key := splitList "." $from | last -}}
  {{- if and (hasKey $section $key) (not (kindIs "invalid" (get $section $key))) -}}
    {{- $given := get $section $key -}}
    {{- if and (eq ($rule.as | default "") "list") (kindIs "string" $given) -}}
      {{- $given = without (regexSplit "[ ,]+" $given -1) "" -}}
    {{- else if eq ($rule.as | default "") "names" -}}
      {{- if $given }}{{ $given = list (dict "name" $given) }}{{ else }}{{ $given = list }}{{ end -}}
    {{- end -}}
    {{- range $target := $rule.to -}}
      {{- $parts := splitList "." $target -}}
      {{- $at := $values -}}
      {{- range $part := initial $parts -}}
        {{- $at = get $at $part -}}
      {{- end -}}
      {{- $_ := set $at (last $parts) $given -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- toYaml $values -}}
{{- end -}}

{{/* Plugins of the user, for whoever reads scheduler.conf: dict of args, volumes and annotations. YAML. Argument: pumice.program. */}}
{{- define "pumice.plugins" -}}
{{- $c := .v.scheduler -}}
{{- $out := dict "args" list "volumes" dict "annotations" dict -}}
{{- if and $c.plugins $c.pluginsDir -}}
{{- fail "scheduler.plugins and scheduler.pluginsDir: give the modules or a folder of the image, not both" -}}
{{- else if $c.plugins -}}
{{- $_ := set $out "args" (list "--plugins-dir=/volcano.plugins") -}}
{{- $source := dict "configMap" (dict "name" (printf "%s-scheduler-plugins" .full)) -}}
{{- $_ := set $out "volumes" (dict "plugins" (dict "path" "/volcano.plugins" "source" $source)) -}}
{{- /* They are read at the start only. */ -}}
{{- $_ := set $out "annotations" (dict "pumice.io/plugins" ($c.plugins | toYaml | sha256sum)) -}}
{{- else if $c.pluginsDir -}}
{{- $_ := set $out "args" (list (printf "--plugins-dir=%s" $c.pluginsDir)) -}}
{{- end -}}
{{- toYaml $out -}}
{{- end -}}

{{/* Everything that templates of one program want to know. YAML. Argument: list of the root and the program's key. */}}
{{- define "pumice.program" -}}
{{- $root := first . -}}
{{- $key := last . -}}
{{- $v := include "pumice.values" $root | fromYaml -}}
{{- $full := include "pumice.fullname" $root -}}
{{- $known := dict
      "scheduler" (dict "app" "volcano-scheduler" "program" "vc-scheduler")
      "controllers" (dict "app" "volcano-controller" "program" "vc-controller-manager")
      "admission" (dict "app" "volcano-admission" "program" "vc-webhook-manager")
      "extender" (dict "app" "vc-extender" "program" "vc-scheduler")
      "certs" (dict "app" "volcano-certs" "program" "vc-certs") -}}
{{- $names := get $known $key -}}
{{- $c := get $v $key -}}
{{- $account := $c.serviceAccount.name | default ($c.serviceAccount.create | ternary (printf "%s-%s" $full $key) "default") -}}
{{- $out := dict "v" $v "c" $c "key" $key "full" $full "name" (printf "%s-%s" $full $key) "account" $account
      "namespace" $root.Release.Namespace "app" $names.app "program" $names.program -}}
{{- toYaml $out -}}
{{- end -}}

{{/* Argument: list of the root, a component and an app ("" for none). */}}
{{- define "pumice.labels" -}}
{{- $root := index . 0 -}}
{{- $v := include "pumice.values" $root | fromYaml -}}
{{- with index . 2 }}
app: {{ . }}
{{- end }}
app.kubernetes.io/name: {{ default $root.Chart.Name $v.nameOverride }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/component: {{ index . 1 }}
app.kubernetes.io/part-of: pumice
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- with $v.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "pumice.image" -}}
{{- $image := .v.image -}}
{{- $name := list $image.registry $image.repository | compact | join "/" -}}
{{- if $image.digest }}{{ $name }}@{{ $image.digest }}{{ else }}{{ $name }}:{{ $image.tag | default .version }}{{ end -}}
{{- end -}}

{{/* Own values of a program before those of all. Argument: dict of v, c. */}}
{{- define "pumice.placement" -}}
{{- range $key := list "nodeSelector" "affinity" "tolerations" }}
{{- with get $.c $key | default (get $.v $key) }}
{{ $key }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}
