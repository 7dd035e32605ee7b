//! Charts that write, read, copy and hand on large values.

use serde_json::{Map, Value, json};

use super::LargeChart;
use super::dice::Dice;

pub(super) fn all() -> Vec<LargeChart> {
    vec![
        to_yaml(),
        to_json(),
        from_yaml(),
        from_json(),
        printed(),
        recursion(),
        includes(),
        merges(),
        copies(),
        values_file(),
    ]
}

/// Returns what a chart says of one workload.
pub(super) fn workload(dice: &mut Dice, index: u32) -> Value {
    let env: Map<String, Value> = (0..12)
        .map(|number| {
            let value = match dice.below(4) {
                0 => json!(dice.below(100_000)),
                1 => json!(dice.float()),
                2 => json!(dice.below(2) == 1),
                _ => json!(dice.words(3)),
            };
            (format!("SETTING_{number}"), value)
        })
        .collect();
    let ports: Vec<Value> = (0..3)
        .map(|number| json!({"name": format!("port-{number}"), "containerPort": 8000 + number, "protocol": "TCP"}))
        .collect();
    json!({
        "name": format!("workload-{index}"),
        "image": {"repository": format!("registry.example.com/team/app-{index}"), "tag": "1.2.3", "pullPolicy": "IfNotPresent"},
        "replicas": dice.below(12),
        "weight": dice.float(),
        "big": u64::from(dice.below(1_000_000)) * 1_000,
        "ports": ports,
        "env": env,
        "resources": {"limits": {"cpu": "500m", "memory": "128Mi"}, "requests": {"cpu": 0.25, "memory": 134_217_728}},
        "annotations": {"description": dice.words(24), "checksum/config": "a: b", "number": "123", "empty": ""},
        "args": ["--listen", ":8080", "--verbose=true", "-c", dice.words(4)],
        "script": "set -e\nexec \"$@\"\n",
    })
}

/// Returns workloads by name, 1.3 kB each as YAML.
pub(super) fn workloads(seed: u64, count: u32) -> Value {
    let mut dice = Dice::new(seed);
    (0..count)
        .map(|index| (format!("workload-{index}"), workload(&mut dice, index)))
        .collect::<Map<_, _>>()
        .into()
}

const CONFIG: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-config\ndata:\n";

/// 1.3 MB of YAML, twice.
fn to_yaml() -> LargeChart {
    let mut chart = LargeChart::new("to-yaml");
    chart.values(&json!({"workloads": workloads(1, 1_000)}));
    chart.template(
        "config.yaml",
        &format!("{CONFIG}  workloads.yaml: |\n    {{{{- toYaml .Values.workloads | nindent 4 }}}}\n"),
    );
    chart.template(
        "each.yaml",
        "{{- range $name, $workload := .Values.workloads }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ $name }}\n  \
         annotations:\n    {{- toYaml $workload.annotations | nindent 4 }}\ndata:\n  env.yaml: |\n    {{- $workload | toYaml | nindent 4 }}\n{{- end }}\n",
    );
    chart
}

fn to_json() -> LargeChart {
    let mut chart = LargeChart::new("to-json");
    chart.values(&json!({"workloads": workloads(2, 1_500)}));
    chart.template(
        "config.yaml",
        &format!(
            "{CONFIG}  a.json: |\n    {{{{ toJson .Values.workloads }}}}\n  b.json: |\n    {{{{- toPrettyJson .Values.workloads | nindent 4 }}}}\n  \
             c.json: {{{{ toRawJson .Values.workloads | quote }}}}\n"
        ),
    );
    chart
}

fn from_yaml() -> LargeChart {
    let mut chart = LargeChart::new("from-yaml");
    chart.put("files/workloads.yaml", values::yaml::emit(&workloads(3, 600)));
    chart.template(
        "config.yaml",
        &format!(
            "{{{{- $all := .Files.Get \"files/workloads.yaml\" | fromYaml }}}}\n{CONFIG}  count: {{{{ len $all | quote }}}}\n  \
             names: {{{{ keys $all | sortAlpha | join \",\" }}}}\n{{{{- range $name, $one := $all }}}}\n  {{{{ $name }}}}: \
             {{{{ ($one | toYaml | fromYaml).image.repository }}}}\n{{{{- end }}}}\n"
        ),
    );
    chart
}

fn from_json() -> LargeChart {
    let mut chart = LargeChart::new("from-json");
    let all = workloads(4, 1_000);
    chart.put("files/workloads.json", all.to_string());
    chart.template(
        "config.yaml",
        &format!(
            "{{{{- $all := .Files.Get \"files/workloads.json\" | fromJson }}}}\n{CONFIG}  count: {{{{ len $all | quote }}}}\n\
             {{{{- range $name, $one := $all }}}}\n  {{{{ $name }}}}: {{{{ ($one | toJson | fromJson).big | int64 | quote }}}}\n{{{{- end }}}}\n"
        ),
    );
    chart
}

/// Sums over printed values: `toString` and `print` of maps of 100 kB.
fn printed() -> LargeChart {
    let mut chart = LargeChart::new("printed-maps");
    chart.values(&json!({"workloads": workloads(5, 80)}));
    chart.template(
        "config.yaml",
        &format!(
            "{CONFIG}{{{{- range $index := until 20 }}}}\n  sum-{{{{ $index }}}}: {{{{ $.Values.workloads | toString | sha256sum }}}}\n  \
             print-{{{{ $index }}}}: {{{{ print $.Values.workloads $index | sha256sum }}}}\n  \
             printf-{{{{ $index }}}}: {{{{ printf \"%v-%s\" $.Values.workloads $.Values | sha1sum }}}}\n{{{{- end }}}}\n  all: {{{{ .Values | quote }}}}\n"
        ),
    );
    chart
}

/// A value is walked by a template that includes itself for each level, with the root at hand.
fn recursion() -> LargeChart {
    let mut chart = LargeChart::new("recursion");
    let mut nested = json!({"leaf": "end"});
    for level in 0..150 {
        let children: Map<String, Value> = (0..3).map(|n| (format!("n{n}"), json!(level * n))).collect();
        nested = json!({ format!("level{level}"): nested, "numbers": children });
    }
    chart.values(&json!({"nested": nested, "workloads": workloads(6, 200)}));
    chart.template(
        "_walk.tpl",
        "{{- define \"walk\" -}}\n{{- $root := .root -}}{{- $path := .path -}}\n{{- range $key, $value := .value }}\n\
         {{- if kindIs \"map\" $value }}\n{{- include \"walk\" (dict \"root\" $root \"value\" $value \"path\" (printf \"%s/%s\" $path $key)) }}\n\
         {{- else }}\n{{ $path | trunc 20 }}.{{ $key }}: {{ $value | quote }}\n{{- end }}\n{{- end }}\n{{- end -}}\n",
    );
    chart.template(
        "config.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: walk\n  annotations:\n    text: |\n      \
         {{- include \"walk\" (dict \"root\" $ \"value\" .Values \"path\" \"\") | nindent 6 }}\n",
    );
    chart
}

/// Small templates of names and labels, again and again.
fn includes() -> LargeChart {
    let mut chart = LargeChart::new("includes");
    chart.values(&json!({"nameOverride": "", "fullnameOverride": "", "commonLabels": {"team": "a", "tier": "b"}, "workloads": workloads(7, 300)}));
    chart.template("_helpers.tpl", super::parts::HELPERS);
    for number in 0..8 {
        chart.template(
            &format!("deployment-{number}.yaml"),
            "{{- range $name, $workload := .Values.workloads }}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{ include \"app.fullname\" $ }}-{{ $name }}\n  \
             labels:\n    {{- include \"app.labels\" $ | nindent 4 }}\nspec:\n  replicas: {{ $workload.replicas }}\n  selector:\n    matchLabels:\n      \
             {{- include \"app.selectorLabels\" $ | nindent 6 }}\n  template:\n    metadata:\n      labels:\n        {{- include \"app.labels\" $ | nindent 8 }}\n    \
             spec:\n      containers:\n        - name: {{ $name }}\n          image: {{ include \"app.image\" (dict \"image\" $workload.image \"root\" $) }}\n          \
             ports:\n            {{- toYaml $workload.ports | nindent 12 }}\n          resources:\n            {{- toYaml $workload.resources | nindent 12 }}\n{{- end }}\n",
        );
    }
    chart
}

fn merges() -> LargeChart {
    let mut chart = LargeChart::new("merges");
    chart.values(&json!({"defaults": workloads(8, 1), "workloads": workloads(9, 400)}));
    chart.template(
        "config.yaml",
        "{{- range $name, $workload := .Values.workloads }}\n{{- $own := merge (dict) $workload (index $.Values.defaults \"workload-0\") }}\n\
         {{- $over := mergeOverwrite (deepCopy (index $.Values.defaults \"workload-0\")) $workload (dict \"replicas\" 3) }}\n\
         {{- $all := mustMergeOverwrite (dict) (deepCopy $.Values.defaults) (dict \"x\" $own) }}\n---\n\
         apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ $name }}\ndata:\n  own: {{ $own.name }}\n  replicas: {{ $over.replicas | quote }}\n  keys: {{ keys $all | sortAlpha | join \",\" }}\n{{- end }}\n",
    );
    chart
}

/// The whole of the values is copied and changed for each of some objects.
fn copies() -> LargeChart {
    let mut chart = LargeChart::new("copies");
    chart.values(&json!({"workloads": workloads(10, 300)}));
    chart.template(
        "config.yaml",
        "{{- range $index := until 30 }}\n{{- $copy := deepCopy $.Values | merge (dict \"index\" $index) }}\n{{- $_ := set $copy.workloads \"added\" $index }}\n\
         {{- $more := omit $copy \"index\" | mergeOverwrite (deepCopy $copy) }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: copy-{{ $index }}\ndata:\n  \
         count: {{ len $copy.workloads | quote }}\n  more: {{ len $more | quote }}\n  same: {{ eq (len $.Values.workloads) 300 | quote }}\n{{- end }}\n",
    );
    chart
}

/// 2 MB of values, of which little is used.
fn values_file() -> LargeChart {
    let mut chart = LargeChart::new("values-file");
    chart.values(&json!({"workloads": workloads(11, 1_500)}));
    chart.template("config.yaml", &format!("{CONFIG}  count: {{{{ len .Values.workloads | quote }}}}\n"));
    chart
}
