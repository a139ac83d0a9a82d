//! Tests of CEL: semantics, compile errors and cost limits.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use kubewright_cel::{
    CelError, Decl, Expression, Output,
    rules::{Budget, Rules},
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn schema() -> Value {
    json!({"type": "object", "properties": {
        "s": {"type": "string"}, "i": {"type": "integer"}, "d": {"type": "number"}, "b": {"type": "boolean"},
        "t": {"type": "string", "format": "date-time"}, "u": {"type": "string", "format": "duration"},
        "y": {"type": "string", "format": "byte"}, "ios": {"x-kubernetes-int-or-string": true},
        "l": {"type": "array", "items": {"type": "integer"}},
        "texts": {"type": "array", "items": {"type": "string"}},
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "lm": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
               "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}}},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        "my_field": {"type": "string"}, "dash-ed": {"type": "string"}, "namespace": {"type": "string"},
        "o": {"type": "object", "properties": {"x": {"type": "integer"}}},
        "free": {"x-kubernetes-preserve-unknown-fields": true},
    }})
}

fn object() -> Value {
    json!({"s": "héllo", "i": 3, "d": 2, "b": true, "t": "2024-02-29T12:00:00Z", "u": "1h30m", "y": "aGk=", "ios": "50%",
           "l": [3, 1, 2], "texts": ["a", "b"], "set": ["x", "y"], "lm": [{"k": "a", "v": 1}, {"k": "b", "v": 2}],
           "m": {"p": 1, "q": 2}, "my_field": "u", "dash-ed": "d", "namespace": "ns", "o": {"x": 7}})
}

fn run(rule: &str) -> Result<bool, CelError> {
    let decl = Decl::from_schema(&schema(), false).unwrap();
    Expression::compile(rule, &decl, false)?.evaluate_bool(&object(), None, &mut 1_000_000)
}

#[test]
fn true_expressions() {
    for rule in [
        // Fields and their names.
        "self.my_field == 'u' && self.dash__dash__ed == 'd' || false",
        "self.__namespace__ == 'ns' && has(self.o.x) && !has(self.o) == false",
        "self.i == 3 && self.d == 2.0 && self.i > 2.5 && self.d < 3",
        "type(self.s) == string && type(self.i) == int && type(self.ios) == string",
        "self.ios == '50%' && !(self.ios == 3)",
        // Logical operators absorb errors of the other operand.
        "true || self.l[9] == 1",
        "!(self.l[9] == 1 && false)",
        "self.b ? self.i == 3 : self.l[9] == 1",
        // Arithmetic and precedence.
        "1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && 7 % 4 == 3 && -self.i == -3 && 7 / 2 == 3",
        "1u + 2u == 3u && 0x10 == 16 && 1e3 == 1000.0 && .5 + .5 == 1.0",
        // String sizes count characters.
        "self.s.size() == 5 && size(self.s) == 5 && self.s.startsWith('h') && self.s.endsWith('lo')",
        "self.s.charAt(1) == 'é' && self.s.indexOf('l') == 2 && self.s.lastIndexOf('l') == 3 && self.s.indexOf('z') == -1",
        "self.s.substring(1, 3) == 'él' && self.s.substring(3) == 'lo' && 'AbC'.lowerAscii() == 'abc'",
        "' x '.trim() == 'x' && 'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c']",
        "'a-b-a'.replace('a', 'x') == 'x-b-x' && 'a-b-a'.replace('a', 'x', 1) == 'x-b-a'",
        "self.texts.join('+') == 'a+b' && self.texts.join() == 'ab' && 'abc'.contains('b')",
        "'%s is %d, %.2f, %x, %b'.format([dyn('it'), dyn(3), dyn(2.5), dyn(255), dyn(5)]) == 'it is 3, 2.50, ff, 101'",
        "'%s %%'.format([[1, 2]]) == '[1, 2] %'",
        r#""tab\t\u00e9\x41" == 'tab	éA' && r'\d' == '\\d' && '''a'b''' == "a'b""#,
        // Regular expressions.
        "self.s.matches('^h.*o$') && matches('abc', 'b') && 'a1b22'.find('[0-9]+') == '1'",
        "'a1b22'.findAll('[0-9]+') == ['1', '22'] && 'a1b22'.findAll('[0-9]+', 1) == ['1']",
        // Lists and maps.
        "self.l.all(x, x > 0) && self.l.exists(x, x == 2) && self.l.exists_one(x, x == 2)",
        "self.l.map(x, x * 2) == [6, 2, 4] && self.l.filter(x, x > 1) == [3, 2] && self.l.map(x, x > 1, x + 1) == [4, 3]",
        "self.l.sum() == 6 && self.l.min() == 1 && self.l.max() == 3 && !self.l.isSorted() && self.texts.isSorted()",
        "self.l.indexOf(2) == 2 && self.l.lastIndexOf(9) == -1 && 2 in self.l && !(9 in self.l)",
        "self.l.sort() == [1, 2, 3] && [1, 1, 2].distinct() == [1, 2] && [1, 2, 3].slice(1, 2) == [2]",
        "[[1], [2, 3]].flatten() == [1, 2, 3] && self.l.reverse() == [2, 1, 3] && self.l.first().value() == 3",
        "'p' in self.m && self.m.p == 1 && self.m['q'] == 2 && self.m.all(k, k != 'z') && self.m.size() == 2",
        "self.m.all(k, v, v > 0) && self.l.exists(i, v, i == 0 && v == 3) && {'a': 1}.transformMap(k, v, v + 1) == {'a': 2}",
        "self.l.transformList(i, v, i + v) == [3, 2, 4] && self.l + [4] == [3, 1, 2, 4]",
        "self.set == ['y', 'x'].map(x, x) || sets.equivalent(self.set, ['y', 'x'])",
        "self.set + ['z'] == ['x', 'y', 'z'] && sets.contains(self.set, ['x']) && sets.intersects([1, 2], [2, 3])",
        "self.lm.exists(e, e.k == 'b' && e.v == 2) && self.lm[0].v == 1",
        "self == self && self.o != null && self.lm == self.lm",
        // Time.
        "self.t.getFullYear() == 2024 && self.t.getMonth() == 1 && self.t.getDate() == 29 && self.t.getHours('+02:00') == 14",
        "self.u == duration('90m') && self.u.getMinutes() == 90 && self.t + duration('24h') == timestamp('2024-03-01T12:00:00Z')",
        "self.t - timestamp('2024-02-28T12:00:00Z') == duration('24h') && string(duration('1.5s')) == '1.5s'",
        "self.y == b'hi' && string(self.y) == 'hi' && size(self.y) == 2",
        // Conversions.
        "int('7') == 7 && double('2.5') == 2.5 && string(1.5) == '1.5' && bool('true') && uint(3) == 3u && int(2.9) == 2",
        // Optionals.
        "self.?s.hasValue() && self.o.?x.orValue(0) == 7 && self.m[?'z'].orValue(5) == 5 && !optional.none().hasValue()",
        "self.?s.optMap(x, x + '!').value() == 'héllo!' && optional.of(1).or(optional.of(2)).value() == 1",
        "[?self.?s, ?optional.none()] == ['héllo'] && {?'a': self.?s} == {'a': 'héllo'}",
        // Kubernetes library.
        "url('https://u@h.example:80/p%20q?a=1&a=2').getHost() == 'h.example:80' && isURL('/x') && !isURL('x')",
        "url('https://h:80/p?a=1&a=2').getQuery()['a'] == ['1', '2'] && url('https://h:80/p').getPort() == '80'",
        "url('https://[::1]:80/p').getHostname() == '::1' && url('https://h/p').getEscapedPath() == '/p'",
        "quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('1k').asInteger() == 1000 && isQuantity('3m')",
        "quantity('1').add(quantity('500m')).compareTo(quantity('1500m')) == 0 && quantity('-1').sign() == -1",
        "ip('10.0.0.1').family() == 4 && isIP('::1') && !isIP('10.0.0.01') && ip('127.0.0.1').isLoopback()",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsCIDR('11.0.0.0/9') && isCIDR('::/0')",
        "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && cidr('10.0.0.0/8').prefixLength() == 8",
        "ip.isCanonical('::1') && !ip.isCanonical('0:0::1') && ip('8.8.8.8').isGlobalUnicast()",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && isSemver('1.0.0-rc.1') && !isSemver('v1') && semver('v1.2', true).minor() == 2",
        "!format.dns1123Label().validate('a-b').hasValue() && format.dns1123Label().validate('A').hasValue()",
        "format.named('uuid').value().validate('x').hasValue() && !format.named('nope').hasValue()",
        // Comments and line breaks.
        "true // yes\n && true",
    ] {
        assert_eq!(run(rule), Ok(true), "{rule}");
    }
}

#[test]
fn compile_errors_have_message_and_position() {
    for (rule, wanted) in [
        ("self.nope == 1", "<input>:1:5: undefined field 'nope'"),
        ("self.free == 1", "<input>:1:5: undefined field 'free'"),
        ("nope == 1", "<input>:1:1: undeclared reference to 'nope' (in container '')"),
        ("nope(1)", "<input>:1:5: undeclared reference to 'nope' (in container '')"),
        ("self.i == self.d", "<input>:1:8: found no matching overload for '_==_' applied to '(int, double)'"),
        (
            "self.s.contains(1)",
            "<input>:1:16: found no matching overload for 'contains' applied to 'string.(int)'",
        ),
        ("self.i && true", "<input>:1:8: found no matching overload for '_&&_' applied to '(int, bool)'"),
        ("self.i.x", "<input>:1:7: type 'int' does not support field selection"),
        ("self.l.all(x, x)", "found no matching overload for '_&&_' applied to '(bool, int)'"),
        (
            "self.i.all(x, true)",
            "expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
        ("[1, 'a'].size() == 2", "expected type 'int' but found 'string'"),
        ("self.all(1, true)", "argument is not an identifier"),
        ("has(self)", "invalid argument to has() macro"),
        ("self.i = 3", "<input>:1:8: Syntax error: token recognition error at: '= '"),
        ("self.i == 3 3", "<input>:1:13: Syntax error: extraneous input '3' expecting <EOF>"),
        ("(self.i", "<input>:1:8: Syntax error: mismatched input '<EOF>' expecting ')'"),
        ("self.for == 1 || for", "Syntax error: reserved identifier: for"),
        ("self.s.matches('(')", "<input>:1:16: invalid matches argument"),
        ("'open", "token recognition error"),
        ("true &&\nself.nope", "<input>:2:5: undefined field 'nope'\n | self.nope\n | ....^"),
    ] {
        let error = run(rule).unwrap_err();
        assert!(
            matches!(error, CelError::Compile(_)) && error.to_string().contains(wanted),
            "{rule}: {error}"
        );
    }
    let deep = format!("{}true{}", "(".repeat(300), ")".repeat(300));
    assert!(run(&deep).unwrap_err().to_string().contains("recursion limit"));
    assert!(run(&"!".repeat(5000)).is_err());
    for nested in [
        format!("{}true{}", "[".repeat(5000), "]".repeat(5000)),
        format!("1{} > 0", " + 1".repeat(5000)),
        format!("self{}", ".o".repeat(5000)),
        "self.l.map(x, ".repeat(5000),
        format!("{}true", "true ? true : ".repeat(5000)),
        "-(".repeat(5000),
    ] {
        assert!(run(&nested).unwrap_err().to_string().contains("recursion limit"), "{}", &nested[..20]);
    }
    assert_eq!(run(&format!("true{}", " && self.i == 3".repeat(5000))), Ok(true));
}

#[test]
fn evaluation_fails_with_a_reason() {
    for (rule, wanted) in [
        ("self.l[5] == 1", "index out of bounds: 5"),
        ("self.m.z == 1", "no such key: z"),
        ("1 / 0 == 1", "division by zero"),
        ("9223372036854775807 + 1 > 0", "integer overflow"),
        ("self.s.charAt(9) == ''", "index out of range: 9"),
        ("int('x') == 1", "strconv.ParseInt: parsing \"x\": invalid syntax"),
        ("self.l.exists(x, self.m.z == x)", "no such key: z"),
        ("optional.none().value() == 1", "optional.none() dereference"),
        ("quantity('x').sign() == 0", "quantities must match the regular expression"),
    ] {
        let error = run(rule).unwrap_err();
        assert!(
            matches!(error, CelError::Evaluate(_)) && error.to_string().contains(wanted),
            "{rule}: {error}"
        );
    }
}

#[test]
fn an_evaluation_over_the_cost_limit_fails() {
    let decl = Decl::from_schema(&json!({"type": "array", "items": {"type": "integer"}}), false).unwrap();
    let rule = Expression::compile("self.all(x, self.all(y, x == y))", &decl, false).unwrap();
    assert!(rule.estimated_cost() > 100_000_000);
    let many: Vec<i64> = vec![1; 2000];
    assert_eq!(rule.evaluate_bool(&json!(many), None, &mut 1_000_000), Err(CelError::CostLimit));
    assert_eq!(rule.output(), Output::Bool);
    let schema = json!({"type": "array", "items": {"type": "integer"},
                        "x-kubernetes-validations": [{"rule": "self.all(x, self.all(y, x == y))"}]});
    let found = Rules::compile(&schema, false).unwrap().validate(
        "l",
        &json!(many),
        None,
        true,
        &mut Budget::per_object(),
    );
    assert!(
        found.errors[0]
            .detail
            .contains("no further validation rules will be run due to call cost exceeds limit")
    );
}

#[test]
fn bounded_sizes_bound_the_cost() {
    let cost = |schema: Value, rule: &str| {
        Expression::compile(rule, &Decl::from_schema(&schema, false).unwrap(), false)
            .unwrap()
            .estimated_cost()
    };
    let rule = "self.all(x, x.contains('a'))";
    let open = cost(json!({"type": "array", "items": {"type": "string"}}), rule);
    let bounded =
        cost(json!({"type": "array", "maxItems": 5, "items": {"type": "string", "maxLength": 10}}), rule);
    assert!(open > 1_000_000 && bounded < 100, "{open} {bounded}");
}

/// Expected numbers of upstream's own tests.
#[test]
fn estimates_equal_those_of_upstream() {
    let list = |of: Value, max: Value| json!({"type": "array", "items": of, "maxItems": max});
    let map =
        |of: Value, max: Value| json!({"type": "object", "additionalProperties": of, "maxProperties": max});
    let text = |max: Value| json!({"type": "string", "maxLength": max});
    let number = || json!({"type": "number"});
    for (schema, rule, wanted) in [
        (list(number(), Value::Null), "self.all(x, true)", 4_718_591),
        (list(number(), json!(10)), "self.all(x, true)", 32),
        (list(number(), json!(10)), "self.all(x, self.all(y, true))", 352),
        (list(number(), json!(10)), "self.all(x, self.all(y, self.all(z, true)))", 3552),
        (list(number(), Value::Null), "self.all(x, x == 0.0)", 6_291_454),
        (list(json!({"type": "string"}), Value::Null), "self.all(x, true)", 3_145_727),
        (list(json!({"type": "string"}), Value::Null), "self[1] == self[1]", 314_577),
        (list(number(), Value::Null), "self[1] == 0.0", 2),
        (list(json!({"x-kubernetes-int-or-string": true}), Value::Null), "self[0] == 5", 3),
        (list(json!({"type": "string", "format": "duration"}), Value::Null), "self[0].getHours() == 2", 4),
        (map(number(), Value::Null), "self.all(x, true)", 1_348_169),
        (map(json!({"type": "boolean"}), json!(100)), "self.all(x, true)", 302),
        (map(json!({"type": "string", "format": "date-time"}), Value::Null), "self['a'] == self['b']", 8),
        (map(json!({"type": "integer"}), Value::Null), "oldSelf.size() == self.size()", 5),
        (text(Value::Null), "self.contains('test')", 314_574),
        (text(json!(10)), "self.contains('test')", 5),
        (text(Value::Null), "self.startsWith('test')", 2),
        (text(Value::Null), "size(self + \"hello\") > size(\"hello\")", 314_578),
        (text(Value::Null), "self.matches('x')", 314_574),
        (text(json!(50)), "self.matches('x')", 22),
        (text(Value::Null), "self.find('[0-9]+') == ''", 629_147),
        (text(Value::Null), "self.lowerAscii() == 'lower!'", 314_575),
        (text(json!(0)), "self == 'x'", 1),
        (list(json!({"type": "string"}), Value::Null), "self.join(' ') == 'aa bb'", 329_853_068_905),
        (list(json!({"type": "string"}), Value::Null), "self.isSorted() == true", 329_854_432_052),
        (json!({"x-kubernetes-int-or-string": true}), "isQuantity(self)", 314_574),
        (json!({"type": "string", "enum": ["A", "LongValue"]}), "self.contains('A')", 2),
    ] {
        let decl = Decl::from_schema(&schema, false).unwrap();
        assert_eq!(
            Expression::compile(rule, &decl, false).unwrap().estimated_cost(),
            wanted,
            "{schema} {rule}"
        );
    }
}

proptest! {
    #[test]
    fn arbitrary_rules_and_values_do_not_panic(rule in "[a-z0-9.()\\[\\]{}'\"?:&|!<>=+*/% ,\\\\-]{0,60}|.{0,40}", i in any::<i64>(), s in ".{0,10}") {
        let decl = Decl::from_schema(&schema(), false).unwrap();
        let object = json!({"i": i, "s": s, "t": s, "u": s, "y": s, "ios": s});
        for rule in [rule.clone(), format!("self.s.{rule}"), format!("self.i {rule} > 1")] {
            if let Ok(program) = Expression::compile(&rule, &decl, false) {
                let _ = program.evaluate_bool(&object, None, &mut 10_000);
            }
        }
    }

    #[test]
    fn library_functions_accept_arbitrary_text(s in ".{0,12}|[0-9a-f.:/]{0,20}|[0-9.eEkKMmin+-]{0,12}", i in any::<i64>()) {
        let decl = Decl::from_schema(&schema(), false).unwrap();
        let object = json!({"i": i, "s": s});
        for rule in [
            "isIP(self.s) || isCIDR(self.s) || isURL(self.s) || isQuantity(self.s) || isSemver(self.s)",
            "quantity(self.s).add(self.i).sign() > 0", "cidr(self.s).masked().prefixLength() > 0",
            "url(self.s).getHostname() == url(self.s).getQuery()['a'][0]", "duration(self.s) > duration('1s')",
            "timestamp(self.s).getHours(self.s) > 0", "timestamp(self.i).getDayOfYear() > 0",
            "self.s.substring(self.i) == self.s.split('', self.i).join()", "self.s.charAt(self.i) == ''",
            "self.s.lastIndexOf('a', self.i) > self.s.indexOf('', self.i)", "'a'.replace('', self.s, self.i) == ''",
            "lists.range(self.i).size() > 0", "-self.i / -1 % self.i > 0", "'%s %d'.format([self.s, self.s]) == ''",
            "[1, 2].slice(self.i, self.i) == []", "self.s.matches(self.s)", "format.uuid().validate(self.s).hasValue()",
        ] {
            let program = Expression::compile(rule, &decl, false).unwrap();
            let _ = program.evaluate_bool(&object, None, &mut 100_000);
        }
    }
}

#[test]
fn old_items_are_correlated_by_key_and_unchanged_errors_are_ratcheted() {
    let schema = json!({"type": "object", "properties": {
        "lm": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {
            "type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer",
                "x-kubernetes-validations": [{"rule": "self >= oldSelf"}, {"rule": "self != 13", "message": "unlucky"}]}}}},
        "at": {"type": "array", "items": {"type": "integer", "x-kubernetes-validations": [{"rule": "self != 13"}]}}}});
    let rules = Rules::compile(&schema, true).unwrap();
    let check = |new: Value, old: Value| {
        let found = rules.validate("", &new, Some(&old), true, &mut Budget::per_object());
        (found.errors.iter().map(ToString::to_string).collect::<Vec<_>>(), found.warnings)
    };
    let old = json!({"lm": [{"k": "a", "v": 13}, {"k": "b", "v": 2}], "at": [13]});
    let (errors, warnings) =
        check(json!({"lm": [{"k": "b", "v": 1}, {"k": "a", "v": 13}], "at": [13]}), old.clone());
    assert_eq!(errors, ["lm[0].v: Invalid value: 1: failed rule: self >= oldSelf"]);
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    let (errors, _) = check(json!({"lm": [{"k": "c", "v": 13}], "at": [13, 1]}), old);
    assert_eq!(
        errors,
        ["at[0]: Invalid value: 13: failed rule: self != 13", "lm[0].v: Invalid value: 13: unlucky"]
    );
}
