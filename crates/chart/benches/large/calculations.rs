//! Charts that count, calculate and decide.

use serde_json::{Map, Value, json};

use super::LargeChart;
use super::dice::Dice;

pub(super) fn all() -> Vec<LargeChart> {
    vec![numbers(), floats(), until(), conditions(), versions()]
}

const CONFIG: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-config\ndata:\n";

/// Maps of numbers that are printed one by one.
fn numbers() -> LargeChart {
    let mut chart = LargeChart::new("numbers");
    let mut dice = Dice::new(21);
    let numbers: Map<String, Value> =
        (0..5_000).map(|index| (format!("number-{index}"), json!(dice.below(2_000_000)))).collect();
    chart.values(&json!({ "numbers": numbers }));
    chart.template(
        "config.yaml",
        &format!(
            "{CONFIG}{{{{- range $key, $number := .Values.numbers }}}}\n  {{{{ $key }}}}: \"{{{{ $number }}}}\"\n  {{{{ $key }}}}-int: {{{{ int $number | quote }}}}\n  \
             {{{{ $key }}}}-more: {{{{ add $number 1 | mul 3 | printf \"%d/%05d\" 7 }}}}\n  {{{{ $key }}}}-text: {{{{ $number | toString | quote }}}}\n{{{{- end }}}}\n"
        ),
    );
    chart
}

fn floats() -> LargeChart {
    let mut chart = LargeChart::new("floats");
    let mut dice = Dice::new(22);
    let floats: Vec<Value> = (0..5_000)
        .map(|index| match index % 4 {
            0 => json!(dice.float() * 1e9),
            1 => json!(dice.float() / 1e9),
            _ => json!(dice.float()),
        })
        .collect();
    chart.values(&json!({ "floats": floats }));
    chart.template(
        "config.yaml",
        &format!(
            "{CONFIG}{{{{- range $index, $float := .Values.floats }}}}\n  v-{{{{ $index }}}}: \"{{{{ $float }}}}\"\n  f-{{{{ $index }}}}: {{{{ printf \"%.3f %e %g\" $float $float $float | quote }}}}\n  \
             m-{{{{ $index }}}}: {{{{ mulf $float 1.5 | addf 0.25 | quote }}}}\n  r-{{{{ $index }}}}: {{{{ round $float 2 | quote }}}}\n{{{{- end }}}}\n  all: {{{{ .Values.floats | toJson | quote }}}}\n"
        ),
    );
    chart
}

fn until() -> LargeChart {
    let mut chart = LargeChart::new("until");
    chart.template(
        "config.yaml",
        &format!(
            "{{{{- $sum := 0 }}}}\n{CONFIG}{{{{- range $index := until 10000 }}}}\n{{{{- $sum = add $sum $index }}}}\n  shard-{{{{ $index }}}}: \"{{{{ mod $index 7 }}}}:{{{{ $sum }}}}\"\n\
             {{{{- end }}}}\n{{{{- range $index, $item := untilStep 0 30000 3 }}}}\n{{{{- if eq (mod $item 2) 0 }}}}\n  even-{{{{ $item }}}}: {{{{ $index | quote }}}}\n{{{{- end }}}}\n{{{{- end }}}}\n"
        ),
    );
    chart
}

fn conditions() -> LargeChart {
    let mut chart = LargeChart::new("conditions");
    chart.values(&json!({"workloads": super::trees::workloads(23, 300)}));
    chart.template(
        "config.yaml",
        &format!(
            "{CONFIG}{{{{- range $name, $w := .Values.workloads }}}}\n{{{{- range $key, $value := $w.env }}}}\n\
             {{{{- if and (kindIs \"float64\" $value) (gt ($value | int) 500) (not (has $key (list \"A\" \"B\" \"C\"))) }}}}\n  {{{{ $name }}}}-{{{{ $key }}}}: large\n\
             {{{{- else if or (eq (kindOf $value) \"bool\") (contains \"timeout\" ($value | toString)) (hasPrefix \"x\" $key) }}}}\n  {{{{ $name }}}}-{{{{ $key }}}}: {{{{ ternary \"yes\" \"no\" (eq ($value | toString) \"true\") | quote }}}}\n\
             {{{{- else if and $w.image (ne $w.image.tag \"latest\") (default false $w.enabled | not) (coalesce $w.none $w.name) }}}}\n  {{{{ $name }}}}-{{{{ $key }}}}: {{{{ $value | default \"none\" | toString | quote }}}}\n\
             {{{{- end }}}}\n{{{{- end }}}}\n{{{{- end }}}}\n"
        ),
    );
    chart
}

fn versions() -> LargeChart {
    let mut chart = LargeChart::new("versions");
    chart.template(
        "config.yaml",
        &format!(
            "{CONFIG}{{{{- range $index := until 3000 }}}}\n  v-{{{{ $index }}}}: {{{{ semverCompare (printf \">=1.%d-0 <2.0.0 || ~3.%d\" (mod $index 40) $index) $.Capabilities.KubeVersion.Version | quote }}}}\n  \
             m-{{{{ $index }}}}: {{{{ (semver (printf \"%d.2.3-beta.1+build\" $index)).Major | quote }}}}\n{{{{- end }}}}\n"
        ),
    );
    chart
}
