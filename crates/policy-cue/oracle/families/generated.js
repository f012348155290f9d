// Programs from a seeded generator: guards, arithmetic, selections, missing fields, wrong kinds.

import { random } from "./random.js";

/** Paths of each kind that exist in most of the objects. */
const PATHS = {
  number: ["spec.priority", "spec.terminationGracePeriodSeconds", "spec.containers[0].ports[0].containerPort", "spec.tolerations[2].tolerationSeconds", "spec.replicas"],
  text: ["kind", "metadata.name", "metadata.labels.app", 'metadata.labels["app.kubernetes.io/part-of"]', 'metadata.annotations."owner"', "metadata.labels.tier", "spec.containers[0].name", "spec.containers[0].resources.limits.cpu", "spec.containers[1].image", "spec.tolerations[0].key"],
  bool: ["spec.hostNetwork", "metadata.ownerReferences[0].controller"],
  list: ["spec.containers", "spec.tolerations", "spec.containers[0].ports", "spec.containers[1].args"],
  struct: ["metadata.labels", "metadata", "status", "spec.containers[0].resources"],
  missing: ["metadata.missing", "metadata.labels.missing", "metadata.missing.deeper", "spec.containers[5].name", "spec.nodeName", "kind.deeper", "spec.nodeName.deeper", "spec.containers.name"],
};
const KINDS = ["number", "text", "bool", "list", "struct"];

class Generator {
  constructor(seed, wildness) {
    this.next = random(seed);
    /** The probability of a value of the wrong kind. */
    this.wildness = wildness;
    this.fields = [];
    this.loops = [];
  }
  below(count) { return Math.floor(this.next() * count); }
  pick(items) { return items[this.below(items.length)]; }
  chance(share) { return this.next() < share; }
  /** Calls one of several generators. */
  one(...makers) { return this.pick(makers)(); }

  path(kind) { return `object.${this.pick(PATHS[this.chance(0.12) ? "missing" : kind])}`; }
  reference(kind) {
    const fitting = this.fields.filter((field) => field.kind === kind);
    if (fitting.length && this.chance(0.4)) return this.pick(fitting).name;
    const loops = this.loops.filter((loop) => loop.kind === kind);
    if (loops.length && this.chance(0.6)) return this.pick(loops).name;
    return this.path(kind);
  }
  value(kind, depth) {
    const wanted = this.chance(this.wildness) ? this.pick(KINDS) : kind;
    if (this.chance(0.02)) return "null";
    return this[wanted](depth);
  }
  number(depth) {
    const literal = () => this.pick(["0", "1", "2", "3", "7", "0.5", "0.001", "1.0", "100", "1e3", "2.50", "-1", "0.1"]);
    if (depth <= 0) return this.chance(0.5) ? literal() : this.reference("number");
    const deeper = depth - 1;
    return this.one(
      literal,
      () => this.reference("number"),
      () => `(${this.value("number", deeper)} ${this.pick(["+", "-", "*", "/"])} ${literal()})`,
      () => `${this.value("number", deeper)} ${this.pick(["+", "-", "*"])} ${literal()} ${this.pick(["+", "-", "/"])} ${literal()}`,
      () => `len(${this.value(this.pick(["text", "list", "struct"]), deeper)})`,
      () => `math.${this.pick(["Round", "Floor", "Ceil", "Trunc", "Abs"])}(${this.value("number", deeper)})`,
      () => `strconv.Atoi(strings.TrimSuffix(${this.value("text", deeper)}, "m"))`,
      () => `strconv.Atoi(${this.pick(['"12"', '"7"', '"-3"'])})`,
      () => `list.Sum([${this.value("number", deeper)}, ${literal()}])`,
      () => `-${this.reference("number")}`,
      () => this.choice(this.reference("number"), literal(), this.pick(["number", "int"])),
    );
  }
  text(depth) {
    const literal = () => this.pick(['""', '"a"', '"web"', '"7"', '"500m"', '"Pod"', '"a,b"', '"ä"']);
    if (depth <= 0) return this.chance(0.5) ? literal() : this.reference("text");
    const deeper = depth - 1;
    return this.one(
      literal,
      () => this.reference("text"),
      () => this.reference("text"),
      () => `"${this.pick(["", "x-", "/"])}\\(${this.value(this.pick(["text", "number", "bool"]), deeper)})${this.pick(["", "!"])}"`,
      () => `(${this.value("text", deeper)} + ${literal()})`,
      () => `strings.${this.pick(["ToUpper", "ToLower", "TrimSpace", "ToTitle"])}(${this.value("text", deeper)})`,
      () => `strings.${this.pick(["TrimSuffix", "TrimPrefix", "Trim"])}(${this.value("text", deeper)}, ${literal()})`,
      () => `strings.Replace(${this.value("text", deeper)}, "b", "c", -1)`,
      () => `strings.Join(strings.Split(${this.value("text", deeper)}, ","), "-")`,
      () => `strings.Split(${this.value("text", deeper)}, ",")[${this.pick(["0", "0", "1"])}]`,
      () => `strconv.FormatInt(math.Round(${this.value("number", deeper)}), 10)`,
      () => this.choice(this.reference("text"), literal(), "string"),
    );
  }
  bool(depth) {
    if (depth <= 0) return this.chance(0.3) ? this.pick(["true", "false"]) : this.one(() => this.reference("bool"), () => this.sure());
    const deeper = depth - 1;
    const any = () => this.path(this.pick(KINDS));
    return this.one(
      () => this.pick(["true", "false"]),
      () => this.reference("bool"),
      () => this.sure(),
      () => this.sure(),
      () => `(${any()} ${this.pick(["==", "!="])} null)`,
      () => `(${this.value("number", deeper)} ${this.pick(["==", "!=", "<", "<=", ">", ">="])} ${this.value("number", deeper)})`,
      () => `(${this.value("text", deeper)} ${this.pick(["==", "!=", "<", ">"])} ${this.value("text", deeper)})`,
      () => `(${this.value("text", deeper)} ${this.pick(["=~", "!~"])} ${this.pick(['"^a"', '"b$"', '"[0-9]+"', '"(web|Pod)"', '"^$"'])})`,
      () => `!${this.value("bool", deeper)}`,
      // Only between operands that are certainly booleans: 0.4.3 has no short circuit.
      () => `(${this.sure()} ${this.pick(["&&", "||"])} ${this.sure()})`,
      () => `strings.${this.pick(["HasPrefix", "HasSuffix", "Contains"])}(${this.value("text", deeper)}, ${this.value("text", 0)})`,
      () => `list.Contains([${this.value("text", 0)}, ${this.value("number", 0)}], ${this.value(this.pick(["text", "number"]), deeper)})`,
    );
  }
  sure() {
    return this.one(() => `(${this.path(this.pick(KINDS))} ${this.pick(["==", "!="])} _|_)`, () => this.pick(["true", "false"]), () => `(${this.pick(["1", "2.5"])} < ${this.pick(["2", "0"])})`);
  }
  /** 0.4.3 treats an incomplete list or struct as false. */
  condition(depth) { return this.chance(this.wildness) ? this.one(() => this.number(depth), () => this.text(depth), () => this.path(this.pick(KINDS))) : this.bool(depth); }
  /** A comprehension with a body. */
  guard(depth, body) {
    if (this.chance(0.6)) return `if ${this.condition(depth)} {${body()}}`;
    const [source, kinds] = this.pick([
      ["object.spec.containers", ["number", "struct"]], ["object.spec.tolerations", ["number", "struct"]], ["object.metadata.labels", ["text", "text"]],
      ["[1, 2]", ["number", "number"]], ['["a", "b"]', ["number", "text"]], ["object.spec.missing", ["number", "text"]],
    ]);
    const level = this.loops.length;
    const [key, item] = [`k${level}`, `t${level}`];
    this.loops.push({ name: item, kind: kinds[1] }, { name: key, kind: kinds[0] });
    const filter = this.chance(0.3) ? ` if ${this.condition(depth)}` : "";
    const text = `for ${key}, ${item} in ${source}${filter} {${body()}}`;
    this.loops.length = level;
    return text;
  }
  list(depth) {
    if (depth <= 0) return this.one(() => this.path("list"), () => "[]", () => '["a", 1]');
    const deeper = depth - 1;
    if (this.chance(0.2)) {
      return this.one(
        () => `list.FlattenN(${this.value("list", deeper)}, ${this.pick(["-1", "0", "1"])})`,
        () => `list.Concat([${this.value("list", deeper)}, [1]])`,
        () => `strings.Split(${this.value("text", deeper)}, ",")`,
        () => `(${this.value("list", deeper)} + ${this.value("list", deeper)})`,
        () => this.reference("list"),
      );
    }
    const any = () => this.value(this.pick(KINDS), deeper);
    const items = [];
    for (let count = this.below(4); count > 0; count -= 1) {
      items.push(this.chance(0.4) ? this.guard(deeper, () => this.one(any, () => this.struct(deeper), () => "", () => this.patch(deeper))) : this.chance(0.3) ? this.patch(deeper) : any());
    }
    return `[${items.join(", ")}]`;
  }
  patch(depth) {
    return `{op: "${this.pick(["add", "replace"])}", path: "/${this.pick(["metadata", "spec"])}/x", value: ${this.value(this.pick(KINDS), depth)}}`;
  }
  struct(depth) {
    if (depth <= 0) return this.one(() => this.path("struct"), () => "{}", () => '{a: 1, b: "x"}');
    const labels = ["a", "b", "c", '"x y"'];
    const fields = [];
    for (let count = this.below(4); count > 0; count -= 1) {
      // Mostly once each: two values rarely unify.
      const label = this.chance(0.1) ? "a" : labels.splice(this.below(labels.length), 1)[0];
      const field = () => `${label}: ${this.value(this.pick(KINDS), depth - 1)}`;
      fields.push(this.chance(0.3) ? this.guard(depth - 1, field) : field());
    }
    return `{${fields.join(", ")}}`;
  }
  choice(first, second, kind) {
    return this.pick([`(*${first} | ${second})`, `(*${first} | ${kind})`, `(${kind} | *${second})`, `(*${first} | ${second} | ${kind})`, `(${first} | ${second})`]);
  }
  program() {
    const lines = ['import ("strings", "strconv", "math", "list")', "object: _ @tag(object)"];
    for (let index = this.below(4); index >= 0; index -= 1) {
      const [name, kind] = [`f${this.fields.length}`, this.pick(KINDS)];
      const type = { number: "number", text: "string", bool: "bool", list: "_", struct: "{}" }[kind];
      const guarded = this.chance(0.3);
      const literal = { number: "0", text: '"none"', bool: "false" }[kind];
      lines.push(`${name}: ${guarded && literal ? `*${literal} | ${type}` : this.value(kind, 2)}`);
      if (this.chance(0.15)) lines.push(`${name}: ${this.chance(0.8) ? type : this.value(kind, 1)}`);
      if (guarded) lines.push(`if ${this.condition(1)} {${name}: ${this.value(kind, 1)}}`);
      this.fields.push({ name, kind });
    }
    lines.push(`patches: ${this.value("list", 3)}`);
    if (this.chance(0.1)) lines.push(`other: ${this.value(this.pick(KINDS), 2)}`);
    return lines.join("\n");
  }
}

export function generate(count, seed) {
  const questions = [];
  for (let index = 0; index < count; index += 1) {
    const generator = new Generator(seed + index, index % 4 === 0 ? 0.1 : 0.01);
    questions.push({ program: generator.program(), inputs: generator.pick(["pod", "pod", "pod", "bare", "deployment"]) });
  }
  return questions;
}
