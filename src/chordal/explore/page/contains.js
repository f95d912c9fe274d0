// What "contains" looks for: words of sequences, names of nodes, texts and columns of rows.

function wordsOf(query) {
  return query.toLowerCase().split(/\s+/).filter(Boolean);
}

// Of an example, the first position at which the words of a query stand one after another; −1 if none.
export function wordFinder(data, query) {
  const words = wordsOf(query);
  if (!words.length) return null;
  const { tokens } = data.list;
  const flags = words.map((word) => Uint8Array.from(data.small, (name) => (name.includes(word) ? 1 : 0)));
  return (i) => {
    for (let v = data.offsets[i]; v + flags.length <= data.offsets[i + 1]; v++) {
      if (flags.every((own, k) => own[tokens[v + k]])) return v - data.offsets[i];
    }
    return -1;
  };
}

// Of a row, 0 if its text or the names of its columns that are not zero hold every word; else −1.
export function rowFinder(data, query) {
  const words = wordsOf(query);
  if (!words.length) return null;
  const { texts, features } = data.facts;
  data.smallTexts ??= texts?.map((text) => text.toLowerCase());
  data.smallFeatures ??= features?.map((name) => name.toLowerCase());
  const flags = words.map((word) =>
    Uint8Array.from(data.smallFeatures ?? [], (name) => (name.includes(word) ? 1 : 0)),
  );
  const has = (i, word, own) => {
    if (data.smallTexts?.[i].includes(word)) return true;
    for (const id of data.featuresOf(i)) if (own[id]) return true;
    return false;
  };
  return (i) => (words.every((word, k) => has(i, word, flags[k])) ? 0 : -1);
}
