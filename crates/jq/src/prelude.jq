def range($from; $to; $by): native_range($from; $to; $by);
def range($from; $to): native_range($from; $to; 1);
def range($to): native_range(0; $to; 1);
def repeat(f): def rec: native_guard | (f, rec); rec;
def recurse(f): def rec: native_guard | (., (f | rec)); rec;
def recurse: recurse(.[]?);
def recurse(f; cond): recurse(f | select(cond));
def while(cond; update): def rec: native_guard | if cond then ., (update | rec) else empty end; rec;
def until(cond; update): def rec: native_guard | if cond then . else update | rec end; rec;
def getpath($path): reduce $path[] as $p (.; native_guard | .[$p]);
def setpath($path; $x): getpath($path) = $x;
def combinations(n): [limit(n; repeat(.))] | combinations;
def nan: native_nan;
def infinite: native_infinite;
def isnan: native_isnan;
def isinfinite: native_isinfinite;
def isnormal: native_isnormal;
def delpaths($paths): native_delpaths($paths);
def env: $ENV;
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
  def cell:
    if . == null then "" elif type == "array" or type == "object" then
      error("join cannot be applied to an array including: \(type)")
    else tostring end;
  if length == 0 then ""
  elif length > 1 and ($s | type) != "string" then error("join expects a string but got: \($s | type)")
  else reduce .[1:][] as $x (.[0] | cell; . + $s + ($x | cell)) end;
def flatten($depth):
  def go($d): native_guard | reduce .[] as $x ([]; if ($x | type) == "array" and $d > 0 then . + ($x | go($d - 1)) else . + [$x] end);
  if $depth < 0 then error("flatten depth must not be negative") else go($depth) end;
def flatten: flatten(1000000000);
def walk(f): def w: native_guard | if type == "object" then map_values(w) elif type == "array" then map(w) else . end | f; w;
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
  path(def r: native_guard | ((.[]? | r), .); r) as $p
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
def INDEX(stream; f): reduce stream as $row ({}; .[$row | f | tostring] = $row);
def INDEX(f): INDEX(.[]; f);
def IN(s): any(s == .; .);
def IN(src; s): any(src == s; .);
def toarray: if type == "array" then . else [.] end;
def have_decnum: false;
def have_literal_numbers: true;
def input_line_number: 0;
def get_search_list: [];
def halt_error($code): if . == null then halt else error end;
def halt_error: halt_error(5);
def JOIN($idx; f): [.[] | [., $idx[f]]];
def JOIN($idx; stream; f): stream | [., $idx[f]];
def JOIN($idx; stream; f; join): stream | [., $idx[f]] | join;
def bsearch($x):
  if length == 0 then -1
  else first(range(0; length) as $i | select(.[$i] >= $x) | if .[$i] == $x then $i else -1 - $i end) // (-1 - length) end;
def abs: if type == "number" then (if . < 0 then - . else . end) else error("abs cannot be applied to: \(type)") end;
def pick(f): . as $top | reduce path(f) as $p (null; setpath($p; $top | getpath($p)));
def logb: if . == 0 then - infinite elif isinfinite then infinite elif isnan then . else ilogb end;
def significand: if isinfinite or isnan or . == 0 then . else scalbln(.; - ilogb) end;
def normals: select(type == "number" and isnormal);
def capture_object: reduce (.captures[] | select(.name != null)) as $c ({}; . + {($c.name): $c.string});
def test($re; $flags): native_test($re; $flags);
def match($re; $flags): native_match($re; $flags)[];
def capture($re; $flags): match($re; $flags) | capture_object;
def scan($re; $flags): match($re; $flags + "g") | if .captures == [] then .string else [.captures[].string] end;
def split($re; $flags): [native_parts($re; $flags + "g")[] | strings];
def splits($re; $flags): split($re; $flags)[];
def sub($re; f; $flags):
  reduce (native_parts($re; $flags) | reverse[]) as $x (""; ($x | if type == "object" then capture_object | f else . end) + .);
def gsub($re; f; $flags): sub($re; f; $flags + "g");
def by_pattern(f): if type == "array" then f else [., ""] | f end;
def test($val): . as $text | $val | by_pattern(. as [$re, $flags] | $text | test($re; $flags));
def match($val): . as $text | $val | by_pattern(. as [$re, $flags] | $text | match($re; $flags));
def capture($val): . as $text | $val | by_pattern(. as [$re, $flags] | $text | capture($re; $flags));
def scan($val): . as $text | $val | by_pattern(. as [$re, $flags] | $text | scan($re; $flags));
def splits($re): splits($re; "");
def sub($re; f): sub($re; f; "");
def gsub($re; f): sub($re; f; "g");
def @base64d: tostring | native_base64d;
def @json: tojson;
def @csv: to_csv;
def @tsv: to_tsv;
def format($name):
  if $name == "text" then tostring elif $name == "json" then tojson elif $name == "csv" then to_csv
  elif $name == "tsv" then to_tsv elif $name == "html" then @html elif $name == "uri" then @uri
  elif $name == "urid" then @urid elif $name == "sh" then @sh elif $name == "base64" then @base64
  elif $name == "base64d" then @base64d else error("format(\($name | tojson)) is not a format") end;
