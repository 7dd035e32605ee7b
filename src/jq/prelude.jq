def nan: native_nan;
def infinite: native_infinite;
def isnan: native_isnan;
def isinfinite: native_isinfinite;
def isnormal: native_isnormal;
def delpaths($paths): native_delpaths($paths);
def env: native_env;
def leaf_paths: paths(scalars);
def isvalid(f): try (f | true) catch false;
def in(xs): . as $x | xs | has($x);
def inside(xs): . as $x | xs | contains($x);
def index($i): indices($i) | .[0];
def rindex($i): indices($i) | .[-1];
def del(f): delpaths([path(f)]);
def to_entries: [keys[] as $k | {key: $k, value: .[$k]}];
def from_entries:
  reduce .[] as $x ({};
    . + {($x
          | if type == "object" then
              (if .key != null then .key elif .k != null then .k elif .name != null then .name
               elif .Name != null then .Name elif .Key != null then .Key else .K end)
            else . end
          | if type == "string" then . elif . == null then "null" else tojson end):
         ($x | if has("value") then .value elif has("v") then .v else .Value end)});
def with_entries(f): to_entries | map(f) | from_entries;
def join($s):
  if length == 0 then ""
  else reduce .[1:][] as $x (.[0] | if . == null then "" else tostring end;
    . + $s + ($x | if . == null then "" else tostring end)) end;
def flatten($depth):
  def go($d): reduce .[] as $x ([]; if ($x | type) == "array" and $d > 0 then . + ($x | go($d - 1)) else . + [$x] end);
  if $depth < 0 then error("flatten depth must not be negative") else go($depth) end;
def flatten: flatten(1000000000);
def walk(f): def w: if type == "object" then map_values(w) elif type == "array" then map(w) else . end | f; w;
def transpose:
  if length == 0 then [] else
  (map(length) | max) as $n | [range(0; $n) as $i | [.[][$i]]] end;
def ascii: [.] | implode;
def todate: strftime("%Y-%m-%dT%H:%M:%SZ");
def dateadd(u; n): . + n;
def datesub(u; n): . - n;
def date: todate;
def finites: select(type == "number" and (isinfinite or isnan | not));
def tostream:
  path(def r: (.[]? | r), .; r) as $p
  | getpath($p)
  | reduce path(.[]?) as $q ([$p, .]; [$p + $q]);
def fromstream(f):
  {x: null, e: false} as $init
  | foreach f as $i ($init;
      if .e then $init else . end
      | if $i | length == 2
        then setpath(["e"]; $i[0] | length == 0) | setpath(["x"] + $i[0]; $i[1])
        else setpath(["e"]; $i[0] | length == 1) end;
      if .e then .x else empty end);
def truncate_stream(stream):
  . as $n | null | stream | . as $input
  | if (.[0] | length) > $n then setpath([0]; .[0][$n:]) else empty end;
def INDEX(stream; f): reduce stream as $row ({}; . + {($row | f | tostring): $row});
def INDEX(f): INDEX(.[]; f);
def IN(s): any(s == .; .);
def IN(src; s): any(src == s; .);
def toarray: if type == "array" then . else [.] end;
def have_decnum: false;
def have_literal_numbers: true;
def input_line_number: 0;
def get_search_list: [];
def halt_error($code): error;
def halt_error: error;
def bsearch($x):
  if length == 0 then -1
  else first(range(0; length) as $i | select(.[$i] >= $x) | if .[$i] == $x then $i else -1 - $i end) // (-1 - length) end;
def @json: tojson;
def @csv: to_csv;
def @tsv: to_tsv;
