"""Scripts about CEL: rules of schemas, policies, conditions of webhooks."""
from scripts import definition, foo, step, G, CM, M

TEXT, NUMBER = {"type": "string", "maxLength": 64}, {"type": "integer"}


def many(items, most=8, **more):
    return dict({"type": "array", "maxItems": most, "items": items}, **more)


SPEC = {
    "s": TEXT, "t": TEXT, "empty": TEXT, "i": NUMBER, "j": NUMBER, "n": {"type": "number"}, "b": {"type": "boolean"}, "by": {"type": "string", "format": "byte", "maxLength": 64}, "at": {"type": "string", "format": "date-time"}, "day": {"type": "string", "format": "date"}, "du": {"type": "string", "format": "duration"},
    "l": many({"type": "string", "maxLength": 10}), "li": many(NUMBER), "ln": many({"type": "number"}), "none": many(NUMBER), "set": many({"type": "string", "maxLength": 10}, **{"x-kubernetes-list-type": "set"}),
    "lm": many({"type": "object", "required": ["k"], "properties": {"k": {"type": "string", "maxLength": 10}, "v": NUMBER}}, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}),
    "m": {"type": "object", "maxProperties": 8, "additionalProperties": {"type": "string", "maxLength": 10}}, "o": {"type": "object", "properties": {"a": TEXT, "x-y": TEXT, "a.b/c": TEXT, "namespace": TEXT, "__d": TEXT, "missing": TEXT}},
    "ios": {"x-kubernetes-int-or-string": True, "maxLength": 20}, "iot": {"x-kubernetes-int-or-string": True, "maxLength": 20}, "nul": dict(TEXT, nullable=True), "nulo": {"type": "object", "nullable": True, "properties": {"a": TEXT}}, "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}, "e": {"type": "string", "enum": ["x", "yy"]}}
VALUES = {"s": "hello", "t": "Größe ✓", "empty": "", "i": 7, "j": -3, "n": 2.5, "b": True, "by": "aGVsbG8=", "at": "2024-02-29T12:30:45.5Z", "day": "2024-02-29", "du": "1h30m", "l": ["b", "a", "c"], "li": [1, 2, 3], "ln": [1, 2.5], "none": [], "set": ["a", "b"], "lm": [{"k": "a", "v": 1}, {"k": "b"}],
          "m": {"x": "1", "y": "2"}, "o": {"a": "1", "x-y": "2", "a.b/c": "3", "namespace": "4", "__d": "5"}, "ios": 5, "iot": "50%", "nul": None, "nulo": None, "any": {"z": 1}, "e": "x"}

# What is true, false, or can't be evaluated.
TRUTHS = """self.s == 'hello'
self.s != 'hello'
self.s.size() == 5
size(self.t) == 7
self.s.startsWith('he') && self.s.endsWith('lo')
self.s.contains('ell')
self.s.matches('^h.*o$')
self.s.matches('^x')
matches(self.s, 'l+')
self.i > self.j
self.i + self.j == 4
self.i - self.j == 10
self.i * self.j == -21
self.i / self.j == -2
self.i % self.j == 1
-self.i == -7
self.i / 0 == 1
self.i % 0 == 1
self.i + 9223372036854775807 > 0
-self.j - 9223372036854775807 > 0
self.n > 2.4 && self.n < 2.6
self.n * 2.0 == 5.0
self.n > 2
self.i < 7.5
self.i == 7 || self.missing
self.b
!self.b
self.b ? self.i == 7 : self.i == 8
self.by == b'hello'
size(self.by) == 5
string(self.by) == 'hello'
self.at == timestamp('2024-02-29T12:30:45.5Z')
self.at > timestamp('2024-01-01T00:00:00Z')
self.at.getFullYear() == 2024
self.at.getMonth() == 1
self.at.getDate() == 29
self.at.getDayOfMonth() == 28
self.at.getDayOfYear() == 59
self.at.getDayOfWeek() == 4
self.at.getHours() == 12 && self.at.getMinutes() == 30 && self.at.getSeconds() == 45
self.at.getMilliseconds() == 500
self.at.getHours('+02:00') == 14
self.at.getHours('America/New_York') == 7
self.at.getHours('Nowhere/None') == 7
self.day.getDate() == 29
self.at - self.day == duration('12h30m45.5s')
self.day + self.du == timestamp('2024-02-29T01:30:00Z')
self.du == duration('90m')
self.du.getHours() == 1
self.du.getMinutes() == 90
self.du.getSeconds() == 5400
self.du + duration('30m') == duration('2h')
self.du > duration('1h')
self.l == ['b', 'a', 'c']
self.l != ['a', 'b', 'c']
self.l[0] == 'b'
self.l[3] == 'b'
self.l[-1] == 'b'
'a' in self.l
'z' in self.l
self.l.all(x, x.size() == 1)
self.l.exists(x, x == 'c')
self.l.exists_one(x, x > 'a')
self.l.map(x, x + x) == ['bb', 'aa', 'cc']
self.l.filter(x, x < 'c') == ['b', 'a']
self.l.map(x, x != 'a', x + '!') == ['b!', 'c!']
self.l.isSorted()
self.li.isSorted()
self.li.sum() == 6
self.li.min() == 1 && self.li.max() == 3
self.none.sum() == 0
self.none.min() == 0
self.none.all(x, false)
self.none.exists(x, true)
self.ln.sum() == 3.5
self.l.indexOf('a') == 1
self.l.lastIndexOf('z') == -1
self.li + [4] == [1, 2, 3, 4]
self.li.map(x, x * 2).sum() == 12
self.li.all(x, 10 / (x - 2) > 0)
self.li.exists(x, 10 / (x - 2) > 5)
self.set == ['b', 'a']
self.set + ['b', 'c'] == ['c', 'b', 'a']
self.lm.map(x, x.k) == ['a', 'b']
self.lm.all(x, has(x.v))
self.lm.exists(x, x.v == 1)
self.lm.exists(x, x.v == 2)
self.lm.filter(x, has(x.v))[0].v == 1
self.lm == [{'k': 'b'}, {'k': 'a', 'v': 1}]
self.m['x'] == '1'
self.m.x == '1'
self.m['z'] == '1'
self.m.z == '1'
'x' in self.m
has(self.m.z)
self.m.all(k, k in ['x', 'y'])
self.m.map(k, self.m[k]).sum() == 0
self.m.size() == 2
self.m == {'y': '2', 'x': '1'}
has(self.o.a)
has(self.o.missing)
self.o.missing == ''
self.o.x__dash__y == '2'
self.o.a__dot__b__slash__c == '3'
self.o.__namespace__ == '4'
self.o.__underscores__d == '5'
self.ios == 5
self.ios == '5'
type(self.ios) == int
type(self.iot) == string
self.ios > 3
self.iot > 3
self.iot.matches('^[0-9]+%$')
self.ios + 1 == 6
self.ios.size() == 1
int(self.iot.replace('%', '')) == 50
self.nul == null
has(self.nul)
type(self.s) == string
type(self.i) == int && type(self.n) == double
type(self.l) == list
type(self.at) == google.protobuf.Timestamp
self.e in ['x', 'z']
self.e == 'yy'
string(self.i) == '7'
string(self.n) == '2.5'
string(self.b) == 'true'
string(self.at) == '2024-02-29T12:30:45.500Z'
string(self.du) == '5400s'
int('12') == 12
int('a') == 12
int(self.n) == 2
uint(7) == 7u
uint(self.j) == 7u
double('2.5') == self.n
double(self.i) == 7.0
bool('true')
bool('maybe')
duration('x1') == self.du || true
duration(self.s) == self.du
timestamp(self.s) == self.at
dyn(self.i) == 7
dyn(self.i) == '7'
dyn(self.i) == 7.0
1 == dyn(1u)
dyn([1, 2]) == [1.0, 2.0]
optional.of(self.i).hasValue()
optional.none().hasValue()
self.?s.hasValue()
self.o.?missing.hasValue()
self.o.?missing.orValue('z') == 'z'
self.o.?a.value() == '1'
self.o.?missing.value() == '1'
self.m[?'x'].orValue('0') == '1'
self.m[?'q'].orValue('0') == '0'
self.l[?7].hasValue()
self.o.?missing.or(optional.of('q')).value() == 'q'
self.o.?a.optMap(x, x + '!').value() == '1!'
self.o.?missing.optMap(x, x + '!').hasValue()
[?self.o.?a, ?self.o.?missing] == ['1']
{?'a': self.o.?a, ?'b': self.o.?missing} == {'a': '1'}
optional.ofNonZeroValue(self.empty).hasValue()
quantity('1.5Gi').isGreaterThan(quantity('1Gi'))
quantity('100m').compareTo(quantity('0.1')) == 0
quantity('1k').asInteger() == 1000
quantity('1.5').asInteger() == 1
quantity('1.5').isInteger()
quantity('1.5').asApproximateFloat() == 1.5
quantity('1Gi').add(quantity('1Gi')) == quantity('2Gi')
quantity('10').sub(3) == quantity('7')
quantity('-1').sign() == -1
quantity(self.s).sign() == 1
isQuantity('1e3') && !isQuantity('abc')
quantity('50k').isLessThan(quantity('60k'))
ip('192.168.0.1').family() == 4
ip('::1').isLoopback()
ip('fe80::1').isLinkLocalUnicast()
ip('224.0.0.1').isLinkLocalMulticast()
ip('8.8.8.8').isGlobalUnicast()
ip('0.0.0.0').isUnspecified()
ip(self.s).family() == 4
isIP('1.2.3.4') && !isIP('1.2.3') && !isIP('::ffff:1.2.3.4')
ip.isCanonical('2001:db8::1')
ip.isCanonical('2001:DB8::1')
string(ip('2001:db8:0::1')) == '2001:db8::1'
ip('1.2.3.4') == ip('1.2.3.4')
cidr('10.0.0.0/8').containsIP('10.1.2.3')
cidr('10.0.0.0/8').containsIP(ip('11.1.2.3'))
cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')
cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))
cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')
cidr('10.1.2.3/8').prefixLength() == 8
cidr('10.1.2.3/8').ip() == ip('10.1.2.3')
cidr('10.0.0.0/33').prefixLength() == 33
cidr('10.0.0.0').prefixLength() == 33
isCIDR('10.0.0.0/8') && !isCIDR('10.0.0.0/08')
string(cidr('10.0.0.0/8')) == '10.0.0.0/8'
url('https://user@example.com:8080/a%20b?q=1&q=2&r#f').getHost() == 'example.com:8080'
url('https://example.com:8080/').getHostname() == 'example.com'
url('https://example.com:8080/').getPort() == '8080'
url('https://example.com/').getPort() == ''
url('https://example.com/a%20b').getEscapedPath() == '/a%20b'
url('https://example.com/?q=1&q=2&r').getQuery() == {'q': ['1', '2'], 'r': ['']}
url('https://[::1]:80/').getHostname() == '::1'
url('/a/b').getScheme() == ''
url(self.s).getScheme() == ''
url('../a').getScheme() == ''
isURL('https://a.b') && !isURL('a.b') && isURL('/x')
format.dns1123Label().validate('my-label').hasValue()
format.dns1123Label().validate('My_Label').hasValue()
format.named('dns1123Label').hasValue()
format.named('nothing').hasValue()
!format.uuid().validate('123e4567-e89b-12d3-a456-426614174000').hasValue()
!format.byte().validate('aGVsbG8=').hasValue()
!format.date().validate('2024-02-30').hasValue()
!format.datetime().validate('2024-02-29T12:30:45Z').hasValue()
!format.uri().validate('https://a.b').hasValue()
!format.qualifiedName().validate('a.b/c').hasValue()
!format.labelValue().validate('a b').hasValue()
!format.dns1123LabelPrefix().validate('a-').hasValue()
!format.dns1035Label().validate('1a').hasValue()
!format.dns1123Subdomain().validate('a.b').hasValue()
sets.contains([1, 2, 3], [2])
sets.contains([1], [1, 2])
sets.equivalent([1, 1, 2], [2, 1])
sets.intersects([1, 2], [3])
self.l.all(i, x, i >= 0 && x != '')
self.m.exists(k, v, k == 'y' && v == '2')
self.m.existsOne(k, v, v > '0')
self.l.transformList(i, x, string(i) + x) == ['0b', '1a', '2c']
self.l.transformList(i, x, i > 0, x) == ['a', 'c']
self.m.transformMap(k, v, v + k) == {'x': '1x', 'y': '2y'}
self.m.transformMapEntry(k, v, {v: k}) == {'1': 'x', '2': 'y'}
self.m.transformMapEntry(k, v, {'a': k}) == {'a': 'x'}
semver('1.2.3').isLessThan(semver('1.10.0'))
semver('1.2.3-alpha.1').compareTo(semver('1.2.3')) == -1
semver('v1.2', true).minor() == 2
semver('1.2').minor() == 2
isSemver('1.2.3+b') && !isSemver('1.02.3')
self.any == self.any || true
1 < 2 && 2u < 3u && 'a' < 'b' && b'a' < b'b' && false < true
1 in [1, 2] && !(3 in [1, 2])
[1, 2][1] == 2
{'a': {'b': 1}}.a.b == 1
{1: 'a', 2: 'b'}[2] == 'b'
{'a': 1, 'a': 2}.size() == 2
[[1], [2, 3]].map(x, x.size()) == [1, 2]
'a' + 'b' == "ab" && r'\\d' == '\\\\d'
'\\u00e9\\x41\\n' == 'éA\\n'
0x1F == 31 && 1e3 == 1000.0
null == null
true || 1 / 0 == 1
1 / 0 == 1 || true
false && 1 / 0 == 1
1 / 0 == 1 && false
1 / 0 == 1 || false
(1 / 0 == 1) ? true : false
self.li.exists(x, self.li.exists(y, x + y == 5))
self.l.all(x, self.m.exists(k, k == x))
self.s.lowerAscii() == self.s && self.s.upperAscii() == 'HELLO'
sign(quantity('-1')) == -1
sign(quantity(self.s)) == 1
self.l.join('|') == 'b|a|c'
has(self.nulo)
self.nulo == null
self.nulo != null && self.nulo.a == ''
self.ios.startsWith('a')
self.ios.contains('a')
self.ios.matches('a')
self.ios.lowerAscii() == ''
self.ios.find('a') == ''
self.ios.getHours() == 1
quantity(self.ios).isInteger()
isIP(self.ios)
self.iot + 1 == 2
-self.iot == 1
!self.ios
self.ios[0] == 1
self.ios.x == 1
has(self.ios.x)
self.ios in [5]
dyn(5) in self.ios
self.ios && true
self.ios || true
self.ios ? true : false
self.ios.all(x, true)
int(dyn(self.li)) == 1
dyn('a') < dyn(1)
dyn([1]) + dyn(1) == [1]
self.li[dyn('a')] == 1
self.m[dyn(1)] == '1'
self.li[dyn(1.0)] == 2
string(dyn(self.li)) == ''
duration(dyn(self.i)) == self.du
size(dyn(1)) == 1
'%d'.format([dyn('a')]) == ''
'%s'.format([dyn(optional.of(1))]) == ''
'%f'.format([12345678.5]) == '12345678.500000'
'%e'.format([0.00012]) == '1.200000×10⁻⁰⁴'
'%e'.format([-1e100]) == '-1.000000×10¹⁰⁰'""".split("\n")

# What makes a text, or can't.
TEXTS = """self.s
self.s + self.t
self.s.charAt(1)
self.s.charAt(5)
self.s.charAt(6)
self.t.charAt(2)
self.s.substring(1)
self.s.substring(1, 3)
self.s.substring(3, 1)
self.s.substring(9)
self.t.substring(2, 4)
string(self.s.indexOf('l'))
string(self.s.indexOf('l', 3))
string(self.s.indexOf('z'))
string(self.s.indexOf('l', 9))
string(self.s.indexOf(''))
string(self.s.lastIndexOf('l'))
string(self.s.lastIndexOf('l', 2))
string(self.s.lastIndexOf(''))
self.s.replace('l', 'L')
self.s.replace('l', 'L', 1)
self.s.replace('', '-')
self.s.replace('l', '', 0)
self.s.split('l').join('|')
self.s.split('l', 2).join('|')
self.s.split('').join('|')
self.s.split('', 2).join('|')
self.s.split('z').join('|')
self.s.split('l', 0).join('|') + '.'
self.l.join()
self.l.join(', ')
'  a b '.trim() + '.'
strings.quote('a"b\\n')
self.s.find('l+')
self.s.find('z') + '.'
self.s.findAll('[a-l]').join(',')
self.s.findAll('[a-l]', 2).join(',')
self.s.find('(') + '.'
'%s has %d'.format([self.s, self.i])
'%s'.format([self.l])
'%s'.format([self.m])
'%s'.format([self.n])
'%s'.format([self.b])
'%s'.format([self.at])
'%s'.format([self.du])
'%s'.format([self.by])
'%s'.format([null])
'%s'.format([type(self.s)])
'%s'.format([{'a': [1, 2.5, 'x']}])
'%d'.format([self.j])
'%d'.format([7u])
'%d'.format([self.n])
'%f'.format([self.n])
'%f'.format([12345678.5])
'%d'.format([12345678])
'%.0f'.format([2.5])
'%e'.format([0.0])
'%.1f'.format([2.25])
'%.3f'.format([2.0])
'%e'.format([1234.5])
'%.2e'.format([1234.5])
'%b'.format([5])
'%b'.format([true])
'%x'.format([255])
'%X'.format([255])
'%x'.format(['hello'])
'%X'.format([b'hello'])
'%o'.format([8])
'%x'.format([-1])
'%%'.format([]) + '.'
'%s'.format([])
'%q'.format([1])
'%'.format([1])
'%s'.format([1, 2])
'%s'.format([optional.of(1)])
string(1.0)
string(1e21)
string(0.1)
string(-0.0)
string(1e-7)
string(123456789.0)
string(9007199254740993)
string(7u)
string(b'a')
string(b'\\xff')
string(timestamp('2024-01-01T00:00:00+02:00'))
string(duration('1.5s'))
string(duration('-90m'))
string(duration('1ms'))
string(self.l.size())
string(type(1) == int)
string(self.li.sum())
string(quantity('1.5Gi').asApproximateFloat())
string(ip('::FFFF:1'))
string(cidr('2001:DB8::/32'))
string(semver('1.2.3').major())
string(url('https://a.b/c?d#e').getEscapedPath())
format.dns1123Label().validate('My_Label').value().join('; ')
format.dns1123Subdomain().validate('-a').value().join('; ')
format.dns1035Label().validate('1').value().join('; ')
format.qualifiedName().validate('a/b/c').value().join('; ')
format.labelValue().validate('a b').value().join('; ')
format.uri().validate('a b').value().join('; ')
format.uuid().validate('a').value().join('; ')
format.byte().validate('a').value().join('; ')
format.date().validate('a').value().join('; ')
format.datetime().validate('a').value().join('; ')
string(uint('18446744073709551615'))
string(int(duration('1s')))
string(int(timestamp('1970-01-01T00:00:10Z')))
string(timestamp(10))
'a\\nb'
'  '
''""".split("\n")

# What does not compile.
WRONG = """self.
self.missing
self.missing.deeper
self.o.nothing
other
other.x == 1
self.s == 1
self.i == 1.0
self.s + 1
self.s > 1
self.i && true
!self.i
self.s.size(1) == 1
self.s.nothing()
nothing(self.s)
self.i.size() == 1
self.l.all(x, x > 1)
self.l.all(x)
self.l.all(x.y, true)
self.i.all(x, true)
self.l.map(x, y)
has(self)
has(self.missing)
has(self.l[0])
[1, 'a'] == [1]
{'a': 1, 'b': 'x'}.size() == 1
{'a': 1, 2: 'x'}.size() == 1
self.m[1] == 'a'
self.l['a'] == 'a'
self.s[0] == 'a'
self.s.x == 'a'
self.any.x == 1
self.nul.x == 1
self.s
self.i
1
'text'
self.ios
null
[]
self.l.map(x, x)
self ==
== self
self.s == 'a
self.s == "a
(self.s == 'a'
self.s == 'a')
self.s = 'a'
self.s == 'a' &
self.s == 'a' && && true
1 +
1 ++ 1
if true then false
self.s.matches('(')
self.s.matches('[')
duration('x') == self.du
timestamp('x') == self.at
self.at == self.du
self.at + self.at == self.at
self.by == 'hello'
Foo{a: 1} == 1
self.o.namespace == 'a'
self.o.x-y == '2'
namespace == 1
'a' in 'abc'
1 in self.l
self.l + self.li == self.l
self.b ? 1 : 'a'
self.b ? self.s : true
self.s.startsWith(1)
self.s.startsWith('a', 'b')
quantity('1') > quantity('2')
quantity('1') + quantity('2') == quantity('3')
quantity(1).sign() == 1
ip('a').nothing()
ip(1).family() == 4
url('a').getHost
cidr('10.0.0.0/8').containsIP(1)
format.nothing().validate('a').hasValue()
optional.of(1) == 1
self.?s == 'hello'
self.o.?a + 'a' == 'a'
self.l.sum() == 1
self.lm.isSorted()
self.lm.sum() == 1
self.l.min() == 1
sets.contains(1, [1])
'%s'.format('a') == 'a'
self.l.sort() == self.l
lists.range(3) == [0, 1, 2]
math.greatest(1, 2) == 2
base64.encode(b'a') == 'a'
cel.bind(x, 1, x == 1)
'abc'.reverse() == 'cba'
self.li.transformList(i, x)
self.li.transformList(i, 1, x)
oldSelf.s
self.s == 'a' || oldSelf.t
int(self.l) == 1
string(self.m) == ''
99999999999999999999 == 1
1u == 1
\u00e9 == 1
self.s == 'é' && self.missing
self.s ==
'\\q' == 'q'
`a` == 1
'%f'.format([1]) == ''
'%e'.format([1]) == ''
'%f'.format(['NaN']) == ''
'%x'.format([1.5]) == ''
int(dyn([1])) == 1""".split("\n")


# Some of them are refused before they are evaluated: they do not compile, or would cost too much.
REFUSED = {TRUTHS[20 * group + place] for group, places in {1: [4], 4: [8, 16], 5: [16], 6: [10, 17, 18], 7: [17, 18], 8: [10, 11], 11: [9]}.items() for place in places}
REFUSED_TEXTS = {TEXTS[20 * group + place + (4 if 20 * group + place > 51 else 0)] for group, places in {1: [3, 4, 5, 6, 7, 15, 16, 17], 2: [11], 3: [5, 6, 7, 8, 9, 10], 4: [0] + list(range(13, 20)), 5: [0, 1, 2]}.items() for place in places}


def parts(items, size):
    return [items[place:place + size] for place in range(0, len(items), size)]


def ruled(rules, properties=SPEC, **more):
    return dict({"type": "object", "properties": properties, "x-kubernetes-validations": rules}, **more)


def level(schema, rules):
    return dict(schema, **{"x-kubernetes-validations": rules})


def rules():
    """Rules in schemas: expressions with their values and messages, what does not compile, what was before, limits."""
    wait = [step("WAIT", "/apis/{u}.io/v1")]
    for number, part in enumerate(parts([text for text in TRUTHS if text not in REFUSED], 20)):
        yield "truth-%02d" % number, [definition(ruled([{"rule": rule} for rule in part]))] + wait + [step("POST", G + "?dryRun=All", foo(VALUES))]
    for number, part in enumerate(parts([text for text in TEXTS if text not in REFUSED_TEXTS], 20)):
        yield "text-%02d" % number, [definition(ruled([{"rule": "1 == %d" % (place + 100), "messageExpression": text} for place, text in enumerate(part)]))] + wait + [step("POST", G + "?dryRun=All", foo(VALUES))]
    for number, part in enumerate(parts(sorted(REFUSED), 4)):
        made = definition(ruled([{"rule": rule} for rule in part]))
        yield "refused-%02d" % number, [dict(made, p=made["p"] + "?dryRun=All")]
    for number, part in enumerate(parts(sorted(REFUSED_TEXTS), 4)):
        made = definition(ruled([{"rule": "1 == %d" % (place + 100), "messageExpression": text} for place, text in enumerate(part)]))
        yield "refused-text-%02d" % number, [dict(made, p=made["p"] + "?dryRun=All")]
    for number, part in enumerate(parts(WRONG, 12)):
        made = definition(ruled([{"rule": rule} for rule in part]))
        yield "wrong-%02d" % number, [dict(made, p=made["p"] + "?dryRun=All")]
    one = lambda **rule: [dict({"rule": "self.i > 10"}, **rule)]
    for number, rule in enumerate([{}, {"message": " too small "}, {"messageExpression": "'%d is too small'.format([self.i])"}, {"message": "plain", "messageExpression": "self.l[9]"}, {"messageExpression": "'a\\nb'"}, {"messageExpression": "''"}, {"reason": "FieldValueForbidden"}, {"reason": "FieldValueRequired", "message": "m"},
                                   {"reason": "FieldValueDuplicate"}, {"reason": "FieldValueInvalid", "fieldPath": ".i"}, {"fieldPath": ".o.a"}, {"fieldPath": ".m['a b']"}, {"fieldPath": ".o['x-y']"}, {"rule": "self.i > 10 &&\nself.j > 10", "message": "lines"}]):
        yield "message-%02d" % number, [definition(ruled(one(**rule)))] + wait + [step("POST", G + "?dryRun=All", foo(VALUES))]
    for number, rule in enumerate([{"rule": ""}, {"rule": " "}, {"message": " "}, {"message": "a\nb"}, {"rule": "self.i >\n10"}, {"messageExpression": " "}, {"messageExpression": "self.i"}, {"messageExpression": "self.missing"}, {"reason": "Odd"}, {"fieldPath": "i"}, {"fieldPath": ".z"}, {"fieldPath": " "}, {"fieldPath": ".i\n"}, {"optionalOldSelf": True}, {"fieldPath": ".l[0]"}]):
        made = definition(ruled(one(**rule)))
        yield "form-%02d" % number, [dict(made, p=made["p"] + "?dryRun=All")]
    dry = lambda schema: [dict(definition(schema), p="/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All")]
    text, endless = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
    yield "cost-of-loop", dry(ruled([{"rule": "self.l.all(x, self.l.all(y, x != y))"}], {"l": endless}))
    yield "cost-of-three-loops", dry(ruled([{"rule": "self.l.all(x, self.l.all(y, self.l.all(z, x != y)))"}], {"l": many(text, 100)}))
    yield "cost-of-texts", dry(ruled([{"rule": "self.s.contains(self.t)"}], {"s": text, "t": text}))
    yield "cost-of-expressions", dry(ruled([{"rule": "self.l.all(x, x.matches('^a+$'))"}], {"l": many(text, 50)}))
    yield "cost-of-items", dry({"type": "object", "properties": {"l": {"type": "array", "items": level(text, [{"rule": "self.size() > 1 && self.contains('abc')"}])}}})
    yield "cost-of-bounded", dry(ruled([{"rule": "self.l.all(x, self.l.all(y, x != y))"}], {"l": many({"type": "string", "maxLength": 10}, 50)}))
    yield "cost-of-map", dry(ruled([{"rule": "self.m.all(k, self.m[k].startsWith('a'))"}], {"m": {"type": "object", "additionalProperties": text}}))
    yield "cost-of-messages", dry(ruled([{"rule": "self.s == 'a'", "messageExpression": "self.s.replace('a', self.s)"}], {"s": text}))
    yield "cost-in-all", dry(ruled([{"rule": "self.l.map(x, x.size()).sum() > %d && self.l.all(x, x.contains('%s'))" % (n, "a" * 30)} for n in range(40)], {"l": many({"type": "string", "maxLength": 3000}, 200)}))
    yield "levels", [definition({"type": "object", "properties": {"s": level(TEXT, [{"rule": "self != 'hello'"}]), "l": many(level({"type": "string", "maxLength": 10}, [{"rule": "self < 'b'"}])), "m": {"type": "object", "maxProperties": 4, "additionalProperties": level({"type": "string", "maxLength": 4}, [{"rule": "self == '1'"}])},
                     "nul": dict(level(TEXT, [{"rule": "false"}]), nullable=True), "o": level(SPEC["o"], [{"rule": "self.a == self.x__dash__y", "fieldPath": ".a"}]), "x-y": level(NUMBER, [{"rule": "self > 1"}]), "1a": level(NUMBER, [{"rule": "self > 1"}])}})] + wait + [step("POST", G + "?dryRun=All", foo(dict(s="hello", l=["a", "b"], m={"x": "1", "y": "2"}, nul=None, o=VALUES["o"], **{"x-y": 1, "1a": 0}))), step("POST", G + "?dryRun=All", foo(dict(s=1)))]
    whole = lambda rules: {"group": "{u}.io", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"}, "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": SPEC}}, "x-kubernetes-validations": rules}}}]}
    root = lambda *rules: step("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {"metadata": {"name": "foos.{u}.io"}, "spec": whole(list(rules))})
    yield "root", [root({"rule": "self.metadata.name.startsWith('b')"}, {"rule": "self.kind == 'Bar' && self.apiVersion == ''"}, {"rule": "self.spec.i > 9", "fieldPath": ".spec.i"}, {"rule": "has(self.metadata.generateName)"})] + wait + [step("POST", G + "?dryRun=All", foo(VALUES))]
    yield "root-wrong", [root({"rule": "self.metadata.labels.size() > 1"}, {"rule": "self.status == 1"}, {"rule": "self.metadata.namespace == 'a'"})]
    change = lambda **spec: step("PATCH", G + "/a", {"spec": spec}, "merge")
    yield "before", [definition(ruled([{"rule": "self.i >= oldSelf.i", "message": "it may not shrink"}, {"rule": "!oldSelf.hasValue() || self.j == oldSelf.value().j", "optionalOldSelf": True, "message": "it may not change"}], dict(SPEC, s=level(TEXT, [{"rule": "self == oldSelf", "message": "immutable"}]), lm=dict(SPEC["lm"], items=level(SPEC["lm"]["items"], [{"rule": "!has(oldSelf.v) || self.v >= oldSelf.v", "message": "v may not shrink"}])))))] + wait + [
        step("POST", G, foo(dict(i=1, j=1, s="a", lm=[{"k": "a", "v": 5}]))), change(i=0), change(i=2), change(j=2), change(s="b"), change(s=None), change(s="c"), change(lm=[{"k": "b", "v": 1}, {"k": "a", "v": 4}]), change(lm=[{"k": "b", "v": 1}, {"k": "a", "v": 6}])]
    yield "before-in-lists", dry({"type": "object", "properties": {"l": many(level(TEXT, [{"rule": "self == oldSelf"}])), "o": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": level(TEXT, [{"rule": "self == oldSelf"}])}}, "m": many({"type": "object", "properties": {"a": level(TEXT, [{"rule": "oldSelf == self"}])}})}})
    tight = {"type": "object", "properties": {"a": level(TEXT, [{"rule": "self == 'good'"}]), "b": TEXT, "l": many(level(TEXT, [{"rule": "self == 'good'"}])), "o": {"type": "object", "properties": {"x": TEXT, "y": TEXT}, "x-kubernetes-validations": [{"rule": "self.x == self.y"}]}}}
    loose = {"type": "object", "properties": {"a": TEXT, "b": TEXT, "l": many(TEXT), "o": {"type": "object", "properties": {"x": TEXT, "y": TEXT}}}}
    tighten = step("PATCH", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/foos.{u}.io", {"spec": {"versions": [dict(definition(tight)["b"]["spec"]["versions"][0], additionalPrinterColumns=[{"name": "b", "type": "string", "jsonPath": ".spec.b"}])]}}, "merge")
    yield "ratcheting", [definition(loose)] + wait + [step("POST", G, foo({"a": "bad", "b": "1", "l": ["bad"], "o": {"x": "1", "y": "2"}})), tighten, dict(step("WAIT", "/apis/{u}.io/v1"), z=2), change(b="2"), change(a="worse"), change(a="good"), change(a="bad"), change(o={"x": "2"}), change(l=["bad", "bad"]), change(l=["good"])]


POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
HERE = {"matchLabels": {"kubernetes.io/metadata.name": "{ns}"}}
MAPS = [{"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]


def policy(*validations, constraints={}, **more):
    return step("POST", POLICIES, {"metadata": {"name": "{u}"}, "spec": dict({"matchConstraints": dict({"namespaceSelector": HERE, "resourceRules": MAPS}, **constraints), "validations": list(validations)}, **more)})


def binding(*actions, **more):
    return step("POST", BINDINGS, {"metadata": {"name": "{u}"}, "spec": dict({"policyName": "{u}", "validationActions": list(actions) or ["Deny"]}, **more)})


def policies():
    """Policies of admission and conditions of webhooks."""
    settled = dict(step("WAIT", "/api/v1/namespaces/{ns}"), z=4)
    make = lambda name="a", **more: step("POST", CM + "?dryRun=All", dict({"metadata": {"name": name, "labels": {"app": "x"}}, "data": {"a": "1", "b": "2"}}, **more))
    both = lambda *steps: list(steps[:-1]) + [settled] + list(steps[-1])
    yield "deny", both(policy({"expression": "object.data.a == '2'"}), binding(), [make(), make(data={"a": "2"})])
    yield "message", both(policy({"expression": "object.data.a == '2'", "message": " it has to be 2 ", "reason": "Forbidden"}), binding(), [make()])
    yield "message-expression", both(policy({"expression": "object.data.a == '2'", "message": "plain", "messageExpression": "'it is ' + object.data.a", "reason": "RequestEntityTooLarge"}), binding(), [make(), make(data={"a": "9"})])
    yield "message-expression-fails", both(policy({"expression": "object.data.a == '2'", "message": "plain", "messageExpression": "string(object.data.zzz)"}), binding(), [make()])
    yield "several", both(policy({"expression": "object.data.a == '2'"}, {"expression": "object.data.b == '3'"}), binding(), [make()])
    yield "warn", both(policy({"expression": "object.data.a == '2'"}, {"expression": "object.data.b == '3'"}), binding("Warn", "Audit"), [make()])
    yield "audit", both(policy({"expression": "object.data.a == '2'"}), binding("Audit"), [make()])
    yield "error", both(policy({"expression": "object.data.zzz == '2'"}), binding(), [make()])
    yield "error-ignored", both(policy({"expression": "object.data.zzz == '2'"}, failurePolicy="Ignore"), binding(), [make()])
    yield "variables", both(policy({"expression": "variables.sum == 4", "messageExpression": "'the sum is ' + string(variables.sum)"}, variables=[{"name": "a", "expression": "int(object.data.a)"}, {"name": "sum", "expression": "variables.a + int(object.data.b)"}]), binding(), [make(), make(data={"a": "2", "b": "2"}), make(data={"a": "x", "b": "2"})])
    yield "conditions", both(policy({"expression": "false"}, matchConditions=[{"name": "a", "expression": "object.data.a == '1'"}, {"name": "b", "expression": "request.operation == 'CREATE'"}]), binding(), [make(), make(data={"a": "2"}), make(data={})])
    yield "request", both(policy(*[{"expression": e} for e in ["request.name == 'b'", "request.namespace != namespaceObject.metadata.name", "request.kind.kind != 'ConfigMap'", "request.resource.resource == 'pods'", "!request.dryRun", "request.userInfo.username == 'nobody'", "oldObject != null", "has(request.subResource)", "'system:masters' in request.userInfo.groups && false", "has(namespaceObject.metadata.labels.a)"]]), binding("Warn"), [make()])
    yield "params", both(step("POST", CM, {"metadata": {"name": "limits"}, "data": {"most": "1"}}), policy({"expression": "int(object.data.b) <= int(params.data.most)", "messageExpression": "'most is ' + params.data.most"}, paramKind={"apiVersion": "v1", "kind": "ConfigMap"}), binding(paramRef={"name": "limits", "parameterNotFoundAction": "Deny"}), [make(), make(data={"b": "1"})])
    yield "params-missing", both(policy({"expression": "params != null"}, paramKind={"apiVersion": "v1", "kind": "ConfigMap"}), binding(paramRef={"name": "limits", "parameterNotFoundAction": "Deny"}), [make()])
    yield "params-missing-allowed", both(policy({"expression": "false"}, paramKind={"apiVersion": "v1", "kind": "ConfigMap"}), binding(paramRef={"name": "limits", "parameterNotFoundAction": "Allow"}), [make()])
    yield "params-selected", both(step("POST", CM, {"metadata": {"name": "one", "labels": {"l": "1"}}, "data": {"most": "5"}}), step("POST", CM, {"metadata": {"name": "two", "labels": {"l": "1"}}, "data": {"most": "1"}}), policy({"expression": "int(object.data.b) <= int(params.data.most)"}, paramKind={"apiVersion": "v1", "kind": "ConfigMap"}), binding(paramRef={"selector": {"matchLabels": {"l": "1"}}, "parameterNotFoundAction": "Deny"}), [make()])
    yield "params-unset", both(policy({"expression": "params == null"}, paramKind={"apiVersion": "v1", "kind": "ConfigMap"}), binding(), [make()])
    yield "selected-objects", both(policy({"expression": "false"}, constraints={"objectSelector": {"matchLabels": {"app": "y"}}}), binding(), [make(), make(metadata={"name": "a", "labels": {"app": "y"}})])
    yield "excluded", both(policy({"expression": "false"}, constraints={"excludeResourceRules": [dict(MAPS[0], resourceNames=["free"])]}), binding(), [make(), make("free")])
    yield "names", both(policy({"expression": "false"}, constraints={"resourceRules": [dict(MAPS[0], resourceNames=["bound"])]}), binding(), [make(), make("bound")])
    yield "binding-selects", both(policy({"expression": "false"}), binding(matchResources={"objectSelector": {"matchLabels": {"app": "y"}}}), [make(), make(metadata={"name": "a", "labels": {"app": "y"}})])
    yield "update", both(policy({"expression": "oldObject == null || object.data.a == oldObject.data.a", "message": "immutable"}), binding(), [step("POST", CM, {"metadata": {"name": "a"}, "data": {"a": "1"}}), step("PATCH", CM + "/a", {"data": {"a": "2"}}, "merge"), step("PATCH", CM + "/a", {"data": {"b": "2"}}, "merge")])
    yield "authorizer", both(policy({"expression": "authorizer.group('').resource('pods').namespace('x').check('create').allowed()", "message": "create"}, {"expression": "authorizer.serviceAccount('default', 'none').group('').resource('pods').check('create').allowed()", "message": "account"}, {"expression": "authorizer.requestResource.check('create').allowed()", "message": "own"}, {"expression": "authorizer.path('/healthz').check('get').allowed()", "message": "path"}), binding("Warn"), [make()])
    yield "annotations", both(policy({"expression": "true"}, auditAnnotations=[{"key": "k", "valueExpression": "string(object.data.zzz)"}]), binding("Audit"), [make()])
    bad = lambda *validations, **more: dict(policy(*validations, **more), p=POLICIES + "?dryRun=All")
    yield "wrong", [bad({"expression": "object.x +"}), bad({"expression": "objekt == 1"}), bad({"expression": "object.x"}), bad({"expression": "1"}), bad({"expression": ""}), bad(), bad({"expression": "params.x == 1"}), bad({"expression": "variables.x == 1"}), bad({"expression": "request.nothing == 1"}), bad({"expression": "true", "message": " "}), bad({"expression": "true", "message": "a\nb"}), bad({"expression": "true", "messageExpression": "1"}), bad({"expression": "true", "messageExpression": "authorizer.path('/').check('get').reason()"}), bad({"expression": "true", "reason": "Odd"}),
                    bad({"expression": "true"}, variables=[{"name": "a-b", "expression": "1"}]), bad({"expression": "variables.a == 'x'"}, variables=[{"name": "a", "expression": "1"}]), bad({"expression": "true"}, variables=[{"name": "a", "expression": "variables.b"}, {"name": "b", "expression": "1"}]), bad({"expression": "true"}, variables=[{"name": "", "expression": ""}]), bad({"expression": "true"}, failurePolicy="Odd"), bad({"expression": "true"}, paramKind={"apiVersion": "a/b/c", "kind": ""}), bad({"expression": "true"}, paramKind={}), bad({"expression": "true"}, matchConstraints={}), bad({"expression": "true"}, matchConditions=[{"name": "a", "expression": "object.x"}]), bad({"expression": "true"}, matchConditions=[{"name": "a", "expression": "zzz"}]),
                    bad(auditAnnotations=[{"key": "a b", "valueExpression": "1"}]), bad(auditAnnotations=[{"key": "a", "valueExpression": ""}, {"key": "a", "valueExpression": "'x'"}]), bad({"expression": "true"}, constraints={"matchPolicy": "Odd", "resourceRules": [{}]})]
    tie = lambda *actions, **more: dict(binding(*actions, **more), p=BINDINGS + "?dryRun=All")
    yield "wrong-bindings", [tie("Odd"), tie("Deny", "Warn"), tie("Deny", "Deny"), tie("Deny", validationActions=[]), tie(policyName=""), tie(policyName="A_"), tie(paramRef={}), tie(paramRef={"name": "a", "selector": {}, "parameterNotFoundAction": "Odd"}), tie(matchResources={"matchPolicy": "Odd"})]
    hook = lambda conditions, **more: step("POST", HOOKS, {"metadata": {"name": "{u}"}, "webhooks": [dict({"name": "a.x.io", "clientConfig": {"url": "https://127.0.0.1:1/x"}, "sideEffects": "None", "admissionReviewVersions": ["v1"], "rules": MAPS, "namespaceSelector": HERE, "matchConditions": [{"name": "c%d" % place, "expression": text} for place, text in enumerate(conditions)]}, **more)]})
    yield "hook-skipped", both(hook(["object.data.a == '2'"]), [make()])
    yield "hook-skipped-beside-error", both(hook(["object.data.zzz == '2'", "false"]), [make()])
    yield "hook-error", both(hook(["object.data.zzz == '2'", "true"]), [make()])
    yield "hook-errors", both(hook(["object.data.zzz == '2'", "oldObject.x == 1"]), [make()])
    yield "hook-error-ignored", both(hook(["object.data.zzz == '2'"], failurePolicy="Ignore"), [make()])
    wrong = lambda *conditions: dict(hook(conditions), p=HOOKS + "?dryRun=All")
    yield "hook-wrong", [wrong("object.x"), wrong("1"), wrong("zzz"), wrong("params.x == 1"), wrong("object.x +"), wrong("authorizer.path('/').check('get').allowed()")]
