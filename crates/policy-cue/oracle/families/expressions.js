// One expression per line: `patches: [EXPRESSION]` with `object` and `n` declared.

const OVER_NUMBERS = String.raw`
1 + 2
1 + 2.0
1.0
2.50
1.50 + 0.5
0.1 + 0.2
500 * 0.001 * 0.3
7 / 2
4 / 2
1 / 3
2 / 3
10 / 4 * 2
1 / 0
0 / 5
0 / 0
-7 / 2
2 - 5
-n.int
+n.int
-n.text
+n.text
!n.yes
!n.int
!!n.no
- - 3
1 - -1
1e3
1e3 + 1
1_000
0x1F
0o17
0b11
017
1K
1.5Ki
2Gi
3M
.5
5.
1e-3 * 1000
123456789012345678901234567890
123456789012345678901234567890 + 1
1234567890123456789012345 * 1
0.1234567890123456789012345 * 1
99999999999999999999999999 + 0.5
1e30 * 1e30
1e300 * 10
9007199254740993
n.large + 1
n.large * n.large
n.int + n.half
n.int * n.half
n.tenth + n.tenth + n.tenth
n.tenth * 3
n.many * 1000
n.small * 2
n.small / 3
n.int + n.text
n.int + n.nothing
n.int + n.yes
n.int + n.list
n.int + n.struct
n.text + n.text
n.text + "a"
n.text * 3
3 * n.text
n.text * 0
n.text * -1
n.text * 1.0
n.text * n.half
n.text - 1
n.text / 2
n.list + n.list
n.list + [4]
n.list + n.floats
n.list * 2
2 * n.list
n.list * 0
n.empty + n.empty
n.empty * 5
[] + []
[[]] + [1]
n.list - n.list
n.struct + n.struct
n.yes + n.no
n.nothing + n.nothing
n.missing + 1
1 + n.missing
n.missing + n.missing
n.missing + (1 / 0)
n.missing * 2
-n.missing
!n.missing
int + 1
1 + int
_ + 1
1 == 1
1 == 1.0
1 == 2
1 != 1.0
n.int == 7
n.int == "7"
"7" == n.int
n.text == "7"
n.text == 7
n.yes == true
n.yes == "true"
"true" == n.yes
n.yes == 1
1 == n.yes
n.nothing == null
null == n.nothing
n.int == null
null == n.int
n.text == null
n.struct == null
n.list == null
n.none == null
n.yes != null
null == null
null != null
n.struct == n.struct
n.struct != n.struct
n.struct == 1
n.none == {}
{} == {}
n.list == n.list
n.list == [1, 2, 3]
n.list == [1, 2, 3.0]
n.list == [1, 2]
n.list != [1, 2]
n.list == [1, 2, "3"]
[1, "a"] == [1, "a"]
["a"] == [1]
[1] == ["a"]
[true] == [1]
[1] == [true]
[null] == [1]
[null] == [null]
[{}] == [{}]
[{a: 1}] == [{a: 1}]
[[1]] == [[1]]
[[1]] == [[2]]
[[1]] == [1]
[n.missing] == [1]
[n.missing] != [1]
n.list == 1
n.list == n.struct
n.empty == []
1 < 2
2 < 1
1 <= 1.0
1.5 > 1
2 >= 3
"a" < "b"
"b" <= "a"
"a" > "B"
"" < "a"
"ä" > "z"
n.int < n.text
n.text < n.int
n.yes < n.no
n.nothing < 1
n.list < n.list
n.int > n.missing
n.missing > n.int
1 < 2 == true
true == 1 < 2
1 == 1 == true
1 < 2 && 2 < 3
n.yes && n.no
n.yes || n.no
n.no && n.no
n.no || n.yes
n.yes && n.yes && n.no
n.no || n.no || n.yes
n.yes && n.int
n.yes && n.text
n.int && n.yes
n.text || n.yes
n.missing && n.yes
n.missing || n.yes
n.yes && n.missing
n.no || n.missing
!(n.yes && n.no)
n.yes && !n.no || n.no
n.no && n.no || n.yes
n.yes || n.no && n.no
(n.yes || n.no) && n.no
n.int == 7 && n.half == 0.5
n.int == 7 && n.text == 7
n.missing == _|_
n.missing != _|_
n.int == _|_
n.int != _|_
n.nothing == _|_
n.nothing != _|_
n.none != _|_
n.empty != _|_
n.missing.deep == _|_
n.missing.deep.er != _|_
n.int.deep == _|_
n.int.deep != _|_
n.text.deep == _|_
n.nothing.deep == _|_
n.list.deep == _|_
n.list[0] != _|_
n.list[2] != _|_
n.list[3] != _|_
n.list[3] == _|_
n.list[100] == _|_
n.list[-1] == _|_
n.list["a"] == _|_
n.struct[0] == _|_
n.struct["a"] != _|_
n.struct["b"] != _|_
_|_ == n.missing
_|_ != n.missing
_|_ == n.int
_|_ != n.int
(1 / 0) == _|_
(1 / 0) != _|_
("a" + 1) == _|_
("a" == 1) == _|_
(n.int == "7") != _|_
int == _|_
n == _|_
n.list == _|_
_|_
_|_ == _|_
n.missing
n.missing.deep
n.int.deep
n.text.deep
n.nothing.deep
n.yes.deep
n.list.deep
n.list[0]
n.list[1]
n.list[3]
n.list[4]
n.list[-1]
n.list[0.0]
n.list[1.5]
n.list["0"]
n.list[n.missing]
n.list[n.zero]
n.list[n.int]
n.list[n.text]
n.list[n.negative]
n.struct.a
n.struct["a"]
n.struct."a"
n["struct"].a
n["str" + "uct"].a
n.struct[0]
n.struct[n.words[1]]
n.struct[n.missing]
n.words[n.list[0]]
n.words[1 + 1]
n.struct.b
n.none.a
n.empty[0]
n.int[0]
n.text[0]
n.nothing[0]
n.missing[0]
n.missing[1 / 0]
[1, 2, 3][1]
[1, 2, 3][3]
{a: 1}.a
{a: 1}["a"]
{a: {b: 2}}.a.b
{a: 1}.b
[[1, 2], [3]][0][1]
[n.int, n.text][1]
"a\(n.int)b"
"\(n.half)"
"\(n.text)"
"\(n.yes)"
"\(n.nothing)"
"\(n.list)"
"\(n.struct)"
"\(n.missing)"
"\(n.small)"
"\(n.large)"
"\(1.50)"
"\(1e3)"
"\(1e30)"
"\(4 / 2)"
"\(1 / 3)"
"\(2 * 0.5)"
"\(100 * 0.01)"
"\(0.0000001)"
"\(0.000001)"
"\(-0.0)"
"\(1K)"
"\(0x10)"
"\(int)"
"\(n.int)\(n.text)"
"\("nested \(n.int)")"
"a\("b")c"
"\(n.int + 1)-\(n.words[0])"
"\(n.missing)\(1 / 0)"
#"raw \n \(n.int)"#
#"raw \#n \#(n.int)"#
##"raw "# \##(n.int)"##
"tab\tquote\"slash\/back\\"
"\u0041\u00e9\U0001F600"
"\ud83d\ude00"
"\a\b\f\v\r"
"ünïcödé 😀"
""
"a" + "b" + "c"
"a" =~ "a"
"abc" =~ "^a.c$"
"abc" !~ "b"
"abc" =~ "^b"
"a\nb" =~ "a.b"
"٣" =~ "^\\d$"
"é" =~ "^\\w$"
"A" =~ "(?i)a"
"a-b" =~ "^[a-z-]+$"
n.text =~ "^[0-9]+$"
n.int =~ "7"
n.nothing =~ "a"
"a" =~ n.int
"a" =~ n.missing
n.missing =~ "a"
"a" =~ n.words[1]
"aab" =~ "^(a+)+b$"
len(n.list)
len(n.text)
len(n.struct)
len(n.none)
len(n.empty)
len("ä")
len([1, 2])
len({a: 1, b: 2})
len(n.int)
len(n.nothing)
len(n.missing)
len(n.yes)
[1, 2, 3]
[1, "a", null, true, [], {}]
[[[1]]]
{}
{a: 1, b: {c: 2}}
{"a b": 1, "c-d": 2}
{a: b: c: 1}
{a: 1, a: 1}
{a: 1, a: 2}
{a: 1, a: 1.0}
{a: int, a: 1}
{a: number, a: 1}
{a: number, a: 1.5}
{a: int, a: 1.0}
{a: float, a: 1}
{a: float, a: 1.0}
{a: string, a: 1}
{a: string, a: "x"}
{a: bytes, a: "x"}
{a: bool, a: true}
{a: bool, a: null}
{a: null, a: null}
{a: _, a: 1}
{a: _}
{a: int}
{a: int, a: string}
{a: int, a: number}
{a: number, a: string}
{a: {b: 1}, a: {c: 2}}
{a: {b: 1}, a: {b: 2}}
{a: {b: 1}, a: 1}
{a: [1], a: [1]}
{a: [1], a: [2]}
{a: [1], a: [1, 2]}
{a: [int], a: [1]}
{a: [{b: 1}], a: [{c: 2}]}
{a: [], a: {}}
{a: 1, b: a}
{a: b, b: 1}
{b: a, a: b, c: 1}
{a: b, b: a}
{a: b + 1, b: a - 1}
{a: a}
{a: a + 1}
{a: {b: a}}
{a: 1, b: {a: 2, c: a}}
{a: 1, b: {c: a}}
{"a": 1, b: {"a": 2}}
{a: 1, b: "\(a)"}
{a?: 1}
{a?: 1, a: 1}
{a?: 1, a: 2}
{a?: int, a: 5}
{a?: string, a: 5}
{a: 5, a?: string}
{a?: 1, b: a}
{a?: 1, b: a == _|_}
{a: {b?: 1}, a: {b: 2}}
{a: {b?: 1}, a: {b: 1}}
1 & 1
1 & 2
1 & int
int & 1
int & number
number & 1.5
string & "a"
"a" & "a"
"a" & "b"
{a: 1} & {b: 2}
{a: 1} & {a: 2}
{a: 1} & {a: int}
[1, 2] & [int, int]
[1] & [1, 2]
null & null
null & 1
_ & 1
1 & 1 & 1
n.int & 7
n.int & int
n.int & string
n.struct & {b: 2}
n.struct & {a: 2}
n.struct & n.none
n.list & [1, 2, 3]
n.list & [1, 2]
n.missing & 1
n.words & n.words
*1 | 2
*1 | int
1 | 2
1 | 1
1 | *1
*1 | *2
*1 | *1
1 | *2 | 3
*n.missing | 5
*n.int | 5
n.missing | 5
n.missing | n.missing
*n.missing | n.text | "x"
*n.struct | {}
*n.struct.b | n.struct.a
*(1 / 0) | 5
int | *1
int | string
"a" | "b" | *"c"
null | 1
*null | string
(*1 | int) + 1
(1 | 2) + 1
(*1 | 2) == 1
(1 | 2) == 1
(*1 | int) != _|_
(1 | 2) != _|_
(1 | 2) == _|_
(*1 | 2) & 2
(*1 | 2) & 1
(*1 | 2 | 3) & (2 | 3)
(*1 | 2) & (1 | *2)
(*1 | 2) & (*1 | 3)
(1 | 2) & (2 | 3)
(1 | 2) & (3 | 4)
(*1 | int) & 5
(*1 | int) & "a"
(*"a" | string) & string
(*"a" | string) & "b"
(*false | bool) & true
(int | *"x") & string
(int | string) & "x"
(number | string) & int
"\(*1 | 2)"
len(*[1] | [1, 2])
n.list[*0 | 1]
{a: *1 | int, b: a}
{a: *1 | int, a: 2, b: a}
{a: *1 | int, b: a + 1}
{a: *b | 5, b: 1}
{a: *b | 5, b: n.missing}
{a: 1 | 2, a: 2}
{a: *1 | 2, a: *2 | 1}
{a: *1 | int, b: a, b: 3}
{a: *1 | 2 | 3, b: a & (2 | 3)}
{a: (*1 | int)}
{a: *true | bool, if a {b: 1}}
{a: *false | bool, if a {b: 1}}
`;

const LISTS = String.raw`
[if true {1}]
[if false {1}]
[if true {}]
[if n.yes {{a: 1}}]
[if n.yes {a: 1}]
[if n.no {a: 1}, 2]
[1, if true {2}, 3]
[if true {[1, 2]}]
[if n.int {1}]
[if n.missing {1}]
[if n.missing == _|_ {1}]
[if n.missing != _|_ {1}]
[if n.nothing {1}]
[if n.text == 7 {1}]
[if n.yes if n.no {1}]
[if n.yes if n.yes {1}]
[if n.yes && n.yes {1}]
[for x in n.list {x}]
[for x in n.list {x + 1}]
[for i, x in n.list {i}]
[for i, x in n.list {"\(i):\(x)"}]
[for i, x in n.list {{k: i, v: x}}]
[for _, x in n.words {x}]
[for i, _ in n.words {i}]
[for x in n.empty {x}]
[for x in n.none {x}]
[for k, v in n.struct {k}]
[for k, v in n.struct {"\(k)=\(v)"}]
[for x in n.int {x}]
[for x in n.text {x}]
[for x in n.nothing {x}]
[for x in n.missing {x}]
[for x in n.list if x > 1 {x}]
[for x in n.list if x > "1" {x}]
[for x in n.list if x == 2 {x}]
[for i, x in n.list if i != 1 {x}]
[for x in n.list for y in n.words {"\(x)\(y)"}]
[for x in n.list for y in n.list if x < y {x * y}]
[for x in n.list {[x]}]
[for x in n.list {if x > 1 {x}}]
[for x in n.list {if x > 1 {a: x}}]
[for x in [1, 2] {x}]
[for x in [n.missing, 1] {x}]
[for x in [{a: 1}, {b: 2}] {x.a}]
[for x in [{a: 1}, {a: 2}] {x.a}]
[for x in {a: 1, b: 2} {x}]
[for k, x in {a: 1, b: 2} {k}]
[for k, x in {a: 1, b?: 2} {k}]
[for x in *[1] | [2] {x}]
[for x in n.list {x}, 9, if true {8}]
[for x in [for y in n.list {y + 1}] {x + 1}]
[for x in n.list + [4] {x}]
[for x in n.list {n}]
[for n in [5] {n}]
[for x in [[1, 2], [3]] {x[0]}]
[for x in [[1, 2], [3]] {for y in x {"\(y)"}}]
[for x in n.list if n.missing {x}]
[for x in n.words if x != "a" {{name: x}}]
[{if n.yes {a: 1}, b: 2}]
[{if n.no {a: 1}, b: 2}]
[{if n.missing {a: 1}, b: 2}]
[{if n.yes {a: 1}, a: 1}]
[{if n.yes {a: 1}, a: 2}]
[{if n.yes {1}}]
[{if n.no {1}}]
[{if n.no {a: 1}}]
[{if n.yes {a: 1}, if n.no {a: 2}}]
[{for k, v in n.struct {b: v}}]
[{for x in n.list {a: x}}]
[{for x in [1, 1] {a: x}}]
[{1}]
[{1, 2}]
[{1, 1}]
[{"a"}]
[{[1]}]
[{{a: 1}}]
[{{a: 1}, b: 2}]
[{n.struct, b: 2}]
[{n.struct}]
[{n.int}]
[{n.missing}]
[{a: 1, 5}]
[{_}]
[{int, 5}]
[{_|_}]
[{if true {if true {if true {a: 1}}}}]
[{a: x, if true {x: 1}}]
[{x: int, a: x, if true {x: 1}}]
[{x: *1 | int, a: x, if true {x: 2}}]
[{x: *false | bool, y: *1 | int, if n.yes {x: true}, if x {y: 2}}]
[{x: *false | bool, y: *1 | int, if x {y: 2}, if n.yes {x: true}}]
[{x: _, if x == _|_ {y: 1}}]
[{x: 1, if x != _|_ {y: 1}}]
[{x: {}, if x.y == _|_ {z: 1}}]
[{x: {y: 1}, if x.y != _|_ {z: x.y}}]
[{let: 1, if: 2, for: 3, in: 4}]
[{null: 1, true: 2, false: 3}]
[{a: 1 @tag(x), b: 2 @go(y) @z("q")}]
[{a: {b: c: 1, d: b.c}}]
[{a: b: 1, a: c: 2}]
[{a: 1, b: {c: {d: a}}}]
[{a: {x: 1, y: x}, b: a & {x: 1}}]
[{a: {x: int, y: x}, b: a & {x: 1}, c: b.y}]
[{a: {x: *1 | int, y: x + 1}, b: a & {x: 5}}]
[{a: {x: *1 | int, y: x + 1}, b: a, b: {x: 5}}]
[{a: {x: 1}, b: a, c: b.x}]
[{a: [1, 2], b: a[1]}]
[{a: [b, 2], b: 1}]
[{a: n.struct, b: a.a}]
[{a: n.struct, a: {b: a.a}}]
[{a: n, b: a.struct.a}]
[{a: {b: 1}, c: a["b"], d: a[e], e: "b"}]
[{a: n.int, a: int}]
[{a: n.int, a: string}]
[{a: n.list, a: [1, 2, 3]}]
[{a: n.list, a: [1, 2, 4]}]
[{a: n.list, a: [_, _, int]}]
`;

const CALLS = String.raw`
strings.HasPrefix("abc", "ab")
strings.HasPrefix("abc", "b")
strings.HasPrefix(n.int, "b")
strings.HasPrefix(n.missing, "b")
strings.HasPrefix(n.nothing, "b")
strings.HasSuffix("500m", "m")
strings.HasSuffix("", "")
strings.TrimSuffix("500m", "m")
strings.TrimSuffix("500mm", "m")
strings.TrimSuffix("500", "m")
strings.TrimPrefix("v1", "v")
strings.TrimPrefix("1", "v")
strings.Contains("abc", "bc")
strings.Contains("abc", "")
strings.ContainsAny("abc", "xc")
strings.ContainsAny("abc", "")
strings.Count("cheese", "e")
strings.Count("five", "")
strings.Index("chicken", "ken")
strings.Index("chicken", "x")
strings.Index("äb", "b")
strings.LastIndex("go gopher", "go")
strings.Split("a,b,c", ",")
strings.Split("a", ",")
strings.Split("", ",")
strings.Split("abc", "")
strings.Split("äö", "")
strings.Split("", "")
strings.Split("a/b/", "/")
strings.Join(["a", "b"], "-")
strings.Join([], "-")
strings.Join(n.words, "")
strings.Join([1], "")
strings.Join([n.missing], "")
strings.Join(n.missing, "")
strings.Join("a", "")
strings.ToLower("ABC Ä İ")
strings.ToUpper("abc ä ß ŉ ǰ")
strings.ToUpper("ᾳ ς")
strings.ToLower("Σ ΑΣ")
strings.ToTitle("hello world")
strings.ToCamel("Hello World")
strings.Trim("  a b ", " ")
strings.Trim("xxaxx", "x")
strings.TrimLeft("xxaxx", "x")
strings.TrimRight("xxaxx", "x")
strings.TrimSpace("\t a \n")
strings.Replace("aaa", "a", "b", 2)
strings.Replace("aaa", "a", "b", -1)
strings.Replace("aaa", "a", "b", 0)
strings.Replace("abc", "", "-", -1)
strings.Replace("abc", "", "-", 2)
strings.Replace("aaa", "x", "b", -1)
strings.Repeat("ab", 3)
strings.Repeat("ab", 0)
strings.Repeat("ab", -1)
strings.Fields("  a  b c ")
strings.Fields("")
strings.MinRunes("äb", 2)
strings.MaxRunes("äb", 1)
strings.SliceRunes("äbc", 1, 2)
strings.SliceRunes("abc", 2, 1)
strings.SliceRunes("abc", 0, 9)
strings.SliceRunes("abc", -1, 2)
strings.Compare("a", "b")
strings.Compare("b", "a")
strings.Compare("a", "a")
strings.HasPrefix("a", "b", "c")
strings.ToUpper(string)
strconv.Atoi("12")
strconv.Atoi("-12")
strconv.Atoi("+12")
strconv.Atoi("012")
strconv.Atoi("1.5")
strconv.Atoi("")
strconv.Atoi("1_000")
strconv.Atoi(" 1")
strconv.Atoi("9223372036854775807")
strconv.Atoi("9223372036854775808")
strconv.Atoi("-9223372036854775808")
strconv.Atoi(12)
strconv.Atoi(n.missing)
strconv.Atoi(n.text) + 1
strconv.Atoi("500") * 0.001
strconv.FormatInt(255, 16)
strconv.FormatInt(-255, 2)
strconv.FormatInt(10, 10)
strconv.FormatInt(10, 1)
strconv.FormatInt(10, 37)
strconv.FormatInt(1.0, 10)
strconv.FormatInt(1.5, 10)
strconv.FormatInt("1", 10)
strconv.FormatInt(math.Round(150.4), 10)
strconv.FormatInt(123456789012345678901, 10)
strconv.ParseInt("ff", 16, 64)
strconv.ParseInt("FF", 16, 64)
strconv.ParseInt("0xff", 0, 64)
strconv.ParseInt("0b11", 0, 64)
strconv.ParseInt("0o17", 0, 64)
strconv.ParseInt("017", 0, 64)
strconv.ParseInt("-17", 10, 64)
strconv.ParseInt("128", 10, 8)
strconv.ParseInt("-128", 10, 8)
strconv.ParseInt("127", 10, 8)
strconv.ParseInt("1", 10, 65)
strconv.ParseInt("1", 1, 64)
strconv.ParseInt("z", 36, 0)
strconv.ParseInt("", 10, 64)
strconv.ParseInt("0", 0, 64)
strconv.ParseInt("--1", 10, 64)
strconv.ParseFloat("1.5", 64)
strconv.ParseFloat("1", 64)
strconv.ParseFloat("1e3", 64)
strconv.ParseFloat(".5", 64)
strconv.ParseFloat("5.", 64)
strconv.ParseFloat("-0.1", 64)
strconv.ParseFloat("0.1", 32)
strconv.ParseFloat("x", 64)
strconv.ParseFloat("", 64)
strconv.ParseFloat("1e400", 64)
"\(strconv.ParseFloat("1e21", 64))"
"\(strconv.ParseFloat("100", 64))"
"\(strconv.ParseFloat("0.00001", 64))"
"\(strconv.ParseFloat("123456789.125", 64))"
strconv.ParseFloat("1.5", 64) * 2
strconv.ParseBool("true")
strconv.ParseBool("T")
strconv.ParseBool("0")
strconv.ParseBool("yes")
strconv.FormatBool(true)
strconv.FormatBool(1)
math.Round(0.5)
math.Round(1.5)
math.Round(2.5)
math.Round(-0.5)
math.Round(-2.5)
math.Round(1.49999)
math.Round(7)
math.Round(1e3)
math.Round(n.half)
math.Round(n.text)
math.Round(n.missing)
math.Round(123456789012345678901234567890.5)
"\(math.Round(1e3))"
"\(math.Round(-0.4))"
math.Floor(1.5)
math.Floor(-1.5)
math.Floor(2)
math.Floor(-0.5)
math.Ceil(1.2)
math.Ceil(-1.2)
math.Ceil(-0.5)
math.Ceil(3)
math.Trunc(1.9)
math.Trunc(-1.9)
math.RoundToEven(2.5)
math.RoundToEven(3.5)
math.Abs(-3)
math.Abs(-3.5)
"\(math.Abs(-3.0))"
math.Signbit(-1)
math.Signbit(0)
math.Round(0.75 * 1000) + 1
list.FlattenN([1, [2, [3, [4]]]], 1)
list.FlattenN([1, [2, [3, [4]]]], -1)
list.FlattenN([1, [2, [3, [4]]]], 0)
list.FlattenN([1, [2, [3, [4]]]], 2)
list.FlattenN([], -1)
list.FlattenN([[], [[]]], -1)
list.FlattenN([{a: [1]}], -1)
list.FlattenN(1, -1)
list.FlattenN(n.missing, -1)
list.FlattenN([n.missing], -1)
list.FlattenN([[n.missing]], -1)
list.FlattenN([[{op: "a"}], if true {[{op: "b"}]}, if true {{op: "c"}}], -1)
list.FlattenN([if true {[if true {[1]}]}], -1)
list.FlattenN([*[1] | [2]], -1)
list.FlattenN([n.list, n.words], -1)
list.Contains([1, 2], 2)
list.Contains([1, 2], 2.0)
list.Contains([1, 2], "2")
list.Contains(["a"], "a")
list.Contains([null], null)
list.Contains([1], null)
list.Contains([{a: 1}], {a: 1})
list.Contains([{a: 1, b: 2}], {b: 2, a: 1})
list.Contains([{a: 1}], {a: 2})
list.Contains([[1]], [1])
list.Contains([[1]], [2])
list.Contains([], 1)
list.Contains(n.words, "c")
list.Contains(n.words, n.missing)
list.Contains(n.missing, 1)
list.Contains([n.missing, 1], 1)
list.Contains([n.missing], 1)
list.Contains("a", "a")
list.Contains([n.struct], {a: 1})
list.Contains([true], true)
list.Contains([1], int)
list.Contains([int], 1)
list.Concat([[1], [2, 3], []])
list.Concat([[1], 2])
list.Concat([])
list.Concat([n.list, n.words])
list.Repeat([1, 2], 2)
list.Repeat([1], 0)
list.Repeat([1], -1)
list.Take([1, 2, 3], 2)
list.Take([1, 2, 3], 9)
list.Take([1, 2, 3], -1)
list.Drop([1, 2, 3], 1)
list.Drop([1, 2, 3], 9)
list.Drop([1, 2, 3], -1)
list.Slice([1, 2, 3], 1, 2)
list.Slice([1, 2, 3], 1, 1)
list.Slice([1, 2, 3], 2, 1)
list.Slice([1, 2, 3], 1, 9)
list.Sum([1, 2, 3])
list.Sum([1.5, 2.5])
"\(list.Sum([1.5, 2.5]))"
list.Sum([])
list.Sum(["a"])
list.Sum([n.missing])
list.Min([3, 1, 2])
list.Max([3, 1, 2])
list.Max([1, 1.5])
list.Max([])
list.Max(n.floats)
list.MinItems([1, 2], 2)
list.MaxItems([1, 2], 1)
list.SortStrings(["b", "a", "C", "ä"])
list.SortStrings([1])
list.SortStrings([])
len(strings.Split("a,b", ","))
strings.Split("a,b", ",")[1]
[for x in strings.Split("a,b", ",") {x + "!"}]
strings.Split("a,b", ",") + ["c"]
strings.Split("a,b", ",") == ["a", "b"]
list.Contains(strings.Split("a,b", ","), "b")
strings.Join(list.SortStrings(n.words), ",")
strings.ToUpper(strings.TrimSuffix("am", "m")) + "x"
strings.Replace(n.words[0], "b", "\(n.int)", -1)
len(list.FlattenN(n.list, 1))
`;

const lines = (text) => text.split("\n").filter((line) => line.trim());
const IMPORTS = 'import ("strings", "strconv", "math", "list")\n';

export const expressions = [
  ...lines(OVER_NUMBERS).map((line) => `n: _\npatches: [${line}]`),
  ...lines(LISTS).map((line) => `n: _\npatches: ${line}`),
  ...lines(CALLS).map((line) => `${IMPORTS}n: _\npatches: [${line}]`),
].map((program) => ({ program, inputs: "numbers" }));
