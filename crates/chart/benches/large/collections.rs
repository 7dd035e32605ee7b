//! Charts that build lists and maps.

use serde_json::json;

use super::LargeChart;

pub(super) fn all() -> Vec<LargeChart> {
    vec![lists(), sets(), lookups()]
}

const CONFIG: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-config\ndata:\n";

/// Lists that grow by one element at a time, and functions over them.
fn lists() -> LargeChart {
    let mut chart = LargeChart::new("lists");
    chart.template(
        "config.yaml",
        &format!(
            "{{{{- $list := list }}}}\n{{{{- range $index := until 3000 }}}}\n{{{{- $list = append $list (printf \"item-%d\" (mod $index 500)) }}}}\n{{{{- end }}}}\n\
             {{{{- $front := list }}}}\n{{{{- range $item := $list }}}}\n{{{{- $front = prepend $front $item }}}}\n{{{{- end }}}}\n\
             {{{{- $joined := list }}}}\n{{{{- range $item := slice $list 0 500 }}}}\n{{{{- $joined = concat $joined (list $item) (splitList \"-\" $item) }}}}\n{{{{- end }}}}\n\
             {{{{- $unique := uniq $list }}}}\n\
             {CONFIG}  all: {{{{ join \",\" $list | quote }}}}\n  front: {{{{ first $front }}}}\n  joined: {{{{ len $joined | quote }}}}\n  unique: {{{{ $unique | sortAlpha | join \" \" | quote }}}}\n  \
             without: {{{{ without $unique \"item-1\" \"item-2\" | len | quote }}}}\n  compact: {{{{ compact $list | len | quote }}}}\n  reverse: {{{{ reverse $unique | toJson | quote }}}}\n\
             {{{{- range $item := $unique }}}}\n  has-{{{{ $item }}}}: {{{{ has $item $list | quote }}}}\n{{{{- end }}}}\n"
        ),
    );
    chart
}

/// Maps that grow by one entry at a time, and functions over them.
fn sets() -> LargeChart {
    let mut chart = LargeChart::new("sets");
    chart.template(
        "config.yaml",
        &format!(
            "{{{{- $map := dict }}}}\n{{{{- range $index := until 5000 }}}}\n{{{{- $_ := set $map (printf \"key-%04d\" $index) (dict \"index\" $index \"even\" (eq (mod $index 2) 0)) }}}}\n{{{{- end }}}}\n\
             {{{{- range $key, $value := $map }}}}\n{{{{- $_ := set $map $key (merge $value (dict \"extra\" $key)) }}}}\n{{{{- if $value.even }}}}{{{{- $_ := unset $map $key }}}}{{{{- end }}}}\n{{{{- end }}}}\n\
             {CONFIG}{{{{- range $key := keys $map | sortAlpha }}}}\n  {{{{ $key }}}}: {{{{ (get $map $key).extra | quote }}}}\n{{{{- end }}}}\n  some: {{{{ pick $map \"key-0001\" \"key-0003\" | toJson | quote }}}}\n  \
             rest: {{{{ omit $map \"key-0001\" | len | quote }}}}\n  values: {{{{ values $map | len | quote }}}}\n"
        ),
    );
    chart
}

/// Paths into large values: `index`, `dig`, `hasKey` and `get`.
fn lookups() -> LargeChart {
    let mut chart = LargeChart::new("paths");
    chart.values(&json!({"workloads": super::trees::workloads(31, 400)}));
    chart.template(
        "config.yaml",
        &format!(
            "{CONFIG}{{{{- range $index := until 2000 }}}}\n{{{{- $name := printf \"workload-%d\" (mod $index 400) }}}}\n{{{{- $w := index $.Values.workloads $name }}}}\n  p-{{{{ $index }}}}: {{{{ dig \"image\" \"tag\" \"none\" $w }}}}-\
             {{{{ (index $w.ports 1).containerPort }}}}-{{{{ hasKey $w \"absent\" }}}}-{{{{ get $w \"name\" }}}}-{{{{ $w.resources.limits.cpu }}}}-{{{{ index $.Values \"workloads\" $name \"env\" \"SETTING_1\" }}}}\n\
             {{{{- end }}}}\n  lookup: {{{{ lookup \"v1\" \"Secret\" \"ns\" \"name\" | len | quote }}}}\n"
        ),
    );
    chart
}
