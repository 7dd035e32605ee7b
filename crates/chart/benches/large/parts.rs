//! Charts of many or large parts: files, subcharts, CRDs, dashboards, documents, schemas.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::LargeChart;
use super::dice::Dice;
use super::trees::{workload, workloads};

pub(super) fn all() -> Vec<LargeChart> {
    vec![tiny(), ordinary(), files(), subcharts(), crds(), dashboards(), documents(), schema()]
}

/// Names and labels as nearly every chart defines them.
pub(super) const HELPERS: &str = r#"{{- define "app.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- define "app.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}
{{- define "app.chart" -}}
{{- printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- define "app.labels" -}}
helm.sh/chart: {{ include "app.chart" . }}
{{ include "app.selectorLabels" . }}
{{- if .Chart.AppVersion }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- define "app.selectorLabels" -}}
app.kubernetes.io/name: {{ include "app.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "app.image" -}}
{{- $registry := default "" (dig "global" "imageRegistry" "" (.root.Values | merge (dict))) -}}
{{- if $registry }}{{ $registry }}/{{ end }}{{ .image.repository }}:{{ .image.tag | toString }}
{{- end }}
"#;

const OBJECTS: &str = r#"{{- with .Values.workload }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "app.fullname" $ }}-NUMBER
  namespace: {{ $.Release.Namespace }}
  labels:
    {{- include "app.labels" $ | nindent 4 }}
  {{- with .annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- if not $.Values.autoscaling.enabled }}
  replicas: {{ .replicas }}
  {{- end }}
  selector:
    matchLabels:
      {{- include "app.selectorLabels" $ | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "app.labels" $ | nindent 8 }}
    spec:
      containers:
        - name: main
          image: "{{ include "app.image" (dict "image" .image "root" $) }}"
          imagePullPolicy: {{ .image.pullPolicy | default "Always" }}
          args:
            {{- range .args }}
            - {{ . | quote }}
            {{- end }}
          ports:
            {{- range .ports }}
            - name: {{ .name }}
              containerPort: {{ .containerPort }}
              protocol: {{ .protocol | default "TCP" }}
            {{- end }}
          env:
            {{- range $name, $value := .env }}
            - name: {{ $name }}
              value: {{ $value | quote }}
            {{- end }}
          resources:
            {{- toYaml .resources | nindent 12 }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ include "app.fullname" $ }}-NUMBER
  labels:
    {{- include "app.labels" $ | nindent 4 }}
spec:
  type: {{ $.Values.service.type }}
  ports:
    {{- range .ports }}
    - port: {{ .containerPort }}
      targetPort: {{ .name }}
      name: {{ .name }}
    {{- end }}
  selector:
    {{- include "app.selectorLabels" $ | nindent 4 }}
{{- end }}
"#;

fn tiny() -> LargeChart {
    let mut chart = LargeChart::new("tiny");
    chart.values(&json!({"name": "x"}));
    chart.template(
        "config.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Values.name }}\ndata:\n  a: {{ .Release.Name }}\n",
    );
    chart
}

fn ordinary_values(dice: &mut Dice) -> Value {
    json!({
        "nameOverride": "", "fullnameOverride": "", "commonLabels": {"team": "a"}, "autoscaling": {"enabled": false},
        "service": {"type": "ClusterIP"}, "workload": workload(dice, 0),
    })
}

/// Two objects in each of thirty templates.
fn ordinary() -> LargeChart {
    let mut chart = LargeChart::new("ordinary");
    chart.values(&ordinary_values(&mut Dice::new(51)));
    chart.template("_helpers.tpl", HELPERS);
    for number in 0..30 {
        chart.template(&format!("objects-{number}.yaml"), &OBJECTS.replace("NUMBER", &number.to_string()));
    }
    chart
}

/// 150 files of 20 kB.
fn files() -> LargeChart {
    let mut chart = LargeChart::new("files");
    let mut dice = Dice::new(52);
    for number in 0..150 {
        chart.put(&format!("files/part-{}/file-{number}.txt", number % 5), dice.lines(20_000));
    }
    chart.template(
        "config.yaml",
        "{{- range $index := until 5 }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c-{{ $index }}\ndata:\n  \
         {{- ($.Files.Glob (printf \"files/part-%d/*\" $index)).AsConfig | nindent 2 }}\n---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: s-{{ $index }}\ndata:\n  \
         {{- ($.Files.Glob (printf \"files/part-%d/*\" $index)).AsSecrets | nindent 2 }}\n{{- end }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: all\ndata:\n\
         {{- range $path, $_ := .Files.Glob \"**.txt\" }}\n  {{ base $path }}: |\n{{ $.Files.Get $path | indent 4 }}\n{{- end }}\n  lines: {{ .Files.Lines \"files/part-0/file-0.txt\" | len | quote }}\n",
    );
    chart
}

/// Twenty subcharts that get 200 kB of globals each.
fn subcharts() -> LargeChart {
    let mut chart = LargeChart::new("subcharts");
    chart.values(
        &json!({"global": {"workloads": workloads(53, 150), "imageRegistry": "registry.example.com"}}),
    );
    let listed: Vec<_> = (0..20)
        .map(|number| {
            format!("- {{name: sub-{number}, version: 0.1.{number}, condition: sub-{number}.enabled}}\n")
        })
        .collect();
    let listed = listed.concat();
    chart.put(
        "Chart.yaml",
        format!("apiVersion: v2\nname: subcharts\nversion: 1.2.3\ndependencies:\n{listed}"),
    );
    for number in 0..20 {
        let below = |path: &str| format!("charts/sub-{number}/{path}");
        chart.put(
            &below("Chart.yaml"),
            format!("apiVersion: v2\nname: sub-{number}\nversion: 0.1.{number}\n"),
        );
        let mut values = ordinary_values(&mut Dice::new(54 + number));
        let global = json!({"workloads": {"workload-0": {"replicas": 1}}, "own": number});
        if let Some(values) = values.as_object_mut() {
            values.insert("global".to_owned(), global);
        }
        chart.put(&below("values.yaml"), values::yaml::emit(&values));
        chart.put(&below("templates/_helpers.tpl"), HELPERS);
        chart.put(&below("templates/objects.yaml"), OBJECTS.replace("NUMBER", &number.to_string()));
        chart.put(
            &below("templates/global.yaml"),
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Chart.Name }}\ndata:\n  count: {{ len .Values.global.workloads | quote }}\n",
        );
    }
    chart
}

/// A schema of an object of about so many bytes.
fn crd(dice: &mut Dice, name: &str, bytes: usize) -> String {
    let mut text = format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  annotations:\n    controller-gen.kubebuilder.io/version: v0.16.1\n  name: {name}s.example.com\n\
         spec:\n  group: example.com\n  names:\n    kind: {name}\n    plural: {name}s\n  scope: Namespaced\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n"
    );
    let mut number = 0;
    while text.len() < bytes {
        let _ = write!(
            text,
            "          field{number}:\n            description: |-\n              {}\n              {}\n            type: object\n            properties:\n              name:\n                description: '{}'\n                maxLength: 63\n                pattern: ^[a-z0-9]([-a-z0-9]*[a-z0-9])?$\n                type: string\n              count:\n                anyOf:\n                - type: integer\n                - type: string\n                x-kubernetes-int-or-string: true\n            required:\n            - name\n",
            dice.words(12),
            dice.words(9),
            dice.words(14)
        );
        number += 1;
    }
    text
}

/// 1.5 MB of CRDs in `crds/`, and the same among the templates.
fn crds() -> LargeChart {
    let mut chart = LargeChart::new("crds");
    let mut dice = Dice::new(55);
    for number in 0..5 {
        let text = crd(&mut dice, &format!("widget{number}"), 300_000);
        chart.put(&format!("crds/crd-{number}.yaml"), text);
        let text = crd(&mut dice, &format!("gadget{number}"), 300_000);
        chart.template(&format!("crd-{number}.yaml"), &format!("{{{{- if true }}}}\n{text}{{{{- end }}}}\n"));
    }
    chart.flags = &["--include-crds"];
    chart
}

/// Thirty dashboards of 60 kB as charts of monitoring have them, with braces for another template language.
fn dashboards() -> LargeChart {
    let mut chart = LargeChart::new("dashboards");
    let mut dice = Dice::new(56);
    chart.template("_helpers.tpl", HELPERS);
    chart.values(&json!({"grafana": {"enabled": true, "labels": {"dashboard": "1"}}}));
    for number in 0..30 {
        let panels: Vec<Value> = (0..60)
            .map(|panel| {
                json!({
                    "id": panel, "title": dice.words(4), "type": "graph", "span": 6, "fill": 1,
                    "gridPos": {"h": 7, "w": 12, "x": 0, "y": panel * 7},
                    "targets": [{"expr": format!("sum(rate({}_total{{job=\"x\"}}[5m])) by (instance)", dice.words(1)), "legendFormat": "@{{instance}}@ / @{{job}}@", "refId": "A"}],
                    "yaxes": [{"format": "short", "min": null, "show": true}, {"format": "short", "max": 1.5, "show": false}],
                })
            })
            .collect();
        let text = format!(
            "{:#}",
            json!({"panels": panels, "title": format!("Dashboard {number}"), "uid": format!("u{number}")})
        );
        let text = text.replace("@{{", "{{`{{").replace("}}@", "}}`}}").replace('\n', "\n    ");
        chart.template(
            &format!("dashboard-{number}.yaml"),
            &format!(
                "{{{{- if and .Values.grafana.enabled (semverCompare \">=1.14.0-0\" .Capabilities.KubeVersion.Version) }}}}\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{{{ printf \"%s-%s\" (include \"app.fullname\" $) \"{number}\" | trunc 63 | trimSuffix \"-\" }}}}\n  \
                 labels:\n    {{{{- toYaml .Values.grafana.labels | nindent 4 }}}}\n{{{{ include \"app.labels\" $ | indent 4 }}}}\ndata:\n  dashboard.json: |-\n    {text}\n{{{{- end }}}}\n"
            ),
        );
    }
    chart
}

/// 2,000 documents in one template, whose heads are written in many ways.
fn documents() -> LargeChart {
    let mut chart = LargeChart::new("documents");
    chart.template(
        "all.yaml",
        "{{- range $index := until 400 }}\n---\n# Document {{ $index }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a-{{ $index }}, labels: {a: b, \"c\": d}}\ndata: {a: \"1\"}\n---\n\
         {\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"metadata\": {\"name\": \"b-{{ $index }}\"}, \"stringData\": {\"k\": \"v\"}}\n---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: &name c-{{ $index }}\n  annotations:\n    helm.sh/hook: pre-install,pre-upgrade\n    helm.sh/hook-weight: \"{{ $index }}\"\nrules:\n- {apiGroups: [\"\"], resources: [pods], verbs: [get]}\n---\n\
         kind: Service\nspec:\n  ports:\n  - {port: 80, name: *x}\napiVersion: v1\nmetadata:\n  \"name\": d-{{ $index }}\n  annotations:\n    text: >-\n      folded text\n      of lines\n---\n\
         apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: e-{{ $index }}\n  annotations: !!map\n    x: y\ndata:\n  a: |\n    b\n{{- end }}\n"
            .replace(", name: *x", "").as_str(),
    );
    chart
}

/// A schema of 200 kB over values of 100 kB.
fn schema() -> LargeChart {
    let mut chart = LargeChart::new("schema");
    chart.values(&json!({"workloads": workloads(57, 80)}));
    let one = json!({
        "type": "object", "required": ["name", "image"],
        "properties": {
            "name": {"type": "string", "pattern": "^[a-z0-9-]+$", "minLength": 1},
            "image": {"$ref": "#/definitions/image"},
            "replicas": {"type": "number", "minimum": 0},
            "env": {"type": "object", "additionalProperties": {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]}},
            "ports": {"type": "array", "items": {"type": "object", "properties": {"protocol": {"enum": ["TCP", "UDP"]}}}},
        },
    });
    let properties: Map<String, Value> =
        (0..200).map(|number| (format!("workload-{number}"), one.clone())).collect();
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
        "definitions": {"image": {"type": "object", "properties": {"repository": {"type": "string"}, "tag": {"type": "string", "pattern": "^[0-9.]+$"}}}},
        "properties": {"workloads": {"type": "object", "properties": properties}},
    });
    chart.put("values.schema.json", schema.to_string());
    chart.template("config.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\ndata:\n  count: {{ len .Values.workloads | quote }}\n");
    chart
}
