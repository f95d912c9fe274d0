// Blocks of data inside the page: base64 of gzip of a JSON header and typed arrays.

const ARRAYS = { Uint8Array, Uint16Array, Uint32Array, Float32Array, Float64Array };

// Where each of consecutive parts begins, and where the last one ends.
export function starts(counts) {
  const out = new Uint32Array(counts.length + 1);
  for (let i = 0; i < counts.length; i++) out[i + 1] = out[i] + counts[i];
  return out;
}

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

// The element of a block, once the parser has passed its end.
async function element(name) {
  const found = document.getElementById(`block-${name}`);
  if (found?.nextElementSibling || document.readyState !== "loading") return found;
  await new Promise((done) => document.addEventListener("DOMContentLoaded", done, { once: true }));
  return document.getElementById(`block-${name}`);
}

export async function unpack(name) {
  const bytes = fromBase64((await element(name)).textContent);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const buffer = await new Response(stream).arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const facts = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const columns = {};
  for (const [key, [type, start, n]] of Object.entries(facts.columns)) {
    columns[key] = new ARRAYS[type](buffer, 4 + length + start, n);
  }
  return { facts, columns };
}
