// Text of the data as a reader can see it, and numbers.

// Control characters, marks that turn the direction of writing, unseen blanks, lone surrogates.
const UNSEEN =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

export function visible(text) {
  const found = text.replace(UNSEEN, (c) => {
    const code = c.charCodeAt(0);
    if (code < 32) return String.fromCharCode(0x2400 + code);
    return code === 127 ? "␡" : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
  return found === "" ? "␣" : found;
}

export function count(n) {
  return n.toLocaleString("en-GB");
}

export function plural(n, one, many = `${one}s`) {
  return `${count(n)} ${n === 1 ? one : many}`;
}

// Whether names fit above the columns of a table without being turned.
export function isShort(names) {
  return names.every((name) => name.length < 3);
}

export function percent(share, digits = 1) {
  return `${(100 * share).toFixed(digits)}%`;
}

export function probability(p) {
  if (p >= 0.9995) return p === 1 ? "1" : "0.999";
  if (p >= 0.001) return p.toFixed(3);
  return p === 0 ? "0" : p.toExponential(0).replace("-", "−");
}

// A number of any size.
export function decimal(x, digits = 4) {
  return String(Number(x.toPrecision(digits))).replaceAll("-", "−");
}

export function signed(x, digits = 2) {
  const text = Math.abs(x).toFixed(digits);
  return Number(text) === 0 ? text : (x < 0 ? "−" : "+") + text;
}

export function nats(x) {
  if (Number.isNaN(x)) return "–";
  return x === Infinity ? "∞" : x.toFixed(2);
}
