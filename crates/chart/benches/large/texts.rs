//! Charts that work on large and on many texts.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::LargeChart;
use super::dice::Dice;

pub(super) fn all() -> Vec<LargeChart> {
    vec![tpl_large(), tpl_many(), regexes(), checksums(), strings(), quotes()]
}

const CONFIG: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-config\ndata:\n";

/// Texts of 300 kB that are templates themselves.
fn tpl_large() -> LargeChart {
    let mut chart = LargeChart::new("tpl-large");
    let mut dice = Dice::new(41);
    let mut text = String::new();
    for index in 0..4_000 {
        let words = dice.words(8);
        let _ = writeln!(text, "line{index}: {words} {{{{ .Values.name }}}} {{{{ add {index} 1 }}}}");
    }
    chart.put("files/config.tpl", text.clone());
    chart.values(&json!({"name": "app", "text": text}));
    chart.template(
        "config.yaml",
        &format!(
            "{CONFIG}  a: |\n    {{{{- tpl (.Files.Get \"files/config.tpl\") . | nindent 4 }}}}\n  b: |\n    {{{{- tpl .Values.text . | nindent 4 }}}}\n  sum: {{{{ tpl .Values.text . | sha256sum }}}}\n"
        ),
    );
    chart
}

/// What charts of a well-known library do to each of their values.
fn tpl_many() -> LargeChart {
    let mut chart = LargeChart::new("tpl-many");
    chart.values(&json!({"name": "app", "workloads": super::trees::workloads(42, 300)}));
    chart.template(
        "_render.tpl",
        "{{- define \"render\" -}}\n{{- $value := typeIs \"string\" .value | ternary .value (.value | toYaml) }}\n{{- if contains \"{{\" (toJson .value) }}\n\
         {{- if .scope }}{{- tpl (cat \"{{- with $.RelativeScope -}}\" $value \"{{- end }}\") (merge (dict \"RelativeScope\" .scope) .context) }}\n{{- else }}{{- tpl $value .context }}{{- end }}\n\
         {{- else }}{{- $value }}{{- end }}\n{{- end -}}\n",
    );
    chart.template(
        "config.yaml",
        "{{- range $name, $w := .Values.workloads }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ tpl \"{{ .Values.name }}\" $ }}-{{ $name }}\n  annotations:\n    \
         {{- include \"render\" (dict \"value\" $w.annotations \"context\" $) | nindent 4 }}\n    name: {{ include \"render\" (dict \"value\" \"{{ .Release.Name }}-x\" \"context\" $) }}\n\
         data:\n  image: |\n    {{- include \"render\" (dict \"value\" $w.image \"context\" $) | nindent 4 }}\n  all: |\n    {{- tpl (toYaml $w) $ | nindent 4 }}\n{{- end }}\n",
    );
    chart
}

fn regexes() -> LargeChart {
    let mut chart = LargeChart::new("regexes");
    let mut dice = Dice::new(43);
    let names: Vec<Value> = (0..3_000).map(|index| json!(format!("{} {index}", dice.words(4)))).collect();
    chart.values(&json!({ "names": names }));
    chart.put("files/large.txt", dice.lines(300_000));
    chart.template(
        "config.yaml",
        &format!(
            "{CONFIG}{{{{- range $index, $name := .Values.names }}}}\n  n-{{{{ $index }}}}: {{{{ regexReplaceAll \"[^a-z0-9]+\" $name \"-\" | trunc 40 | trimSuffix \"-\" }}}}\n  \
             m-{{{{ $index }}}}: {{{{ regexMatch \"^(the|a) .*[0-9]$\" $name | quote }}}}\n  f-{{{{ $index }}}}: {{{{ regexFind \"[0-9]+$\" $name | quote }}}}\n\
             {{{{- end }}}}\n  large: {{{{ .Files.Get \"files/large.txt\" | regexReplaceAll \"(?m)^(\\\\w+) (\\\\w+)\" \"${{2}} ${{1}}\" | sha256sum }}}}\n  \
             words: {{{{ regexFindAll \"\\\\b[a-z]{{7,}}\\\\b\" (.Files.Get \"files/large.txt\") -1 | len | quote }}}}\n  split: {{{{ regexSplit \"\\n\" (.Files.Get \"files/large.txt\") -1 | len | quote }}}}\n"
        ),
    );
    chart
}

/// Sums of rendered templates in the annotations of others, and of large files.
fn checksums() -> LargeChart {
    let mut chart = LargeChart::new("checksums");
    let mut dice = Dice::new(44);
    chart.put("files/large.txt", dice.lines(900_000));
    chart.values(&json!({"workloads": super::trees::workloads(45, 40)}));
    chart.template(
        "configmap.yaml",
        &format!("{CONFIG}  all: |\n    {{{{- range $name, $w := .Values.workloads }}}}\n    {{{{- toYaml $w | nindent 4 }}}}\n    {{{{- end }}}}\n"),
    );
    for number in 0..15 {
        chart.template(
            &format!("deployment-{number}.yaml"),
            &format!(
                "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: d-{number}\nspec:\n  template:\n    metadata:\n      annotations:\n        checksum/config: {{{{ include (print $.Template.BasePath \"/configmap.yaml\") . | sha256sum }}}}\n        \
                 checksum/file: {{{{ .Files.Get \"files/large.txt\" | sha256sum }}}}\n"
            ),
        );
    }
    chart.template(
        "secret.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\ndata:\n  large: {{ .Files.Get \"files/large.txt\" | b64enc }}\n  back: {{ .Files.Get \"files/large.txt\" | b64enc | b64dec | sha512sum }}\n  adler: {{ .Files.Get \"files/large.txt\" | adler32sum | quote }}\n",
    );
    chart
}

fn strings() -> LargeChart {
    let mut chart = LargeChart::new("strings");
    let mut dice = Dice::new(46);
    chart.put("files/large.txt", dice.lines(500_000));
    let names: Vec<Value> = (0..3_000).map(|_| json!(dice.words(5))).collect();
    chart.values(&json!({ "names": names }));
    chart.template(
        "config.yaml",
        &format!(
            "{CONFIG}{{{{- $large := .Files.Get \"files/large.txt\" }}}}\n{{{{- range $index, $name := .Values.names }}}}\n  n-{{{{ $index }}}}: {{{{ printf \"%s-%s\" ($name | replace \" \" \"-\" | lower | trunc 30 | trimSuffix \"-\") ($name | upper | trimPrefix \"THE\" | trim | nospace) | quote }}}}\n  \
             t-{{{{ $index }}}}: {{{{ title $name | squote }}}}\n  c-{{{{ $index }}}}: {{{{ camelcase $name }}}}{{{{ kebabcase $name }}}}{{{{ snakecase $name }}}}\n  s-{{{{ $index }}}}: {{{{ join \"|\" (splitList \" \" $name) | quote }}}}\n\
             {{{{- end }}}}\n  large: |\n    {{{{- $large | replace \"client\" \"server\" | indent 4 | trim | nindent 4 }}}}\n  lines: {{{{ splitList \"\\n\" $large | len | quote }}}}\n  quoted: {{{{ $large | quote }}}}\n  squoted: {{{{ $large | trunc 1000 | squote }}}}\n  \
             upper: {{{{ $large | upper | sha256sum }}}}\n  wrap: {{{{ $large | trunc 100000 | wrap 80 | sha256sum }}}}\n  has: {{{{ contains \"no such text\" $large | quote }}}}\n"
        ),
    );
    chart
}

/// Texts that need quotes, escapes and folds.
fn quotes() -> LargeChart {
    let mut chart = LargeChart::new("quotes");
    let mut dice = Dice::new(47);
    let texts: Map<String, Value> = (0..2_000)
        .map(|index| {
            let words = dice.words(20);
            let text = match index % 8 {
                0 => format!("\"{words}\" <a href='x'>&\\"),
                1 => format!("{words}: # {words}"),
                2 => format!("{words}\n  {words}\n"),
                3 => format!("{words} ü€ 100%"),
                4 => format!("{index}"),
                5 => "yes".to_owned(),
                6 => format!("- {words} "),
                _ => format!("C:\\{words}\\é"),
            };
            (format!("text-{index}"), json!(text))
        })
        .collect();
    chart.values(&json!({ "texts": texts }));
    chart.template(
        "config.yaml",
        &format!(
            "{CONFIG}  yaml: |\n    {{{{- toYaml .Values.texts | nindent 4 }}}}\n  json: {{{{ toJson .Values.texts | quote }}}}\n{{{{- range $name, $text := .Values.texts }}}}\n  {{{{ $name }}}}: {{{{ $text | quote }}}}\n  {{{{ $name }}}}-x: {{{{ printf \"%q|%x\" $text $text | b64enc }}}}\n{{{{- end }}}}\n"
        ),
    );
    chart
}
