// Which examples are shown, and in which order.

export const NONE = {
  wrong: false,
  confidence: 1,
  contains: "",
  gold: -1,
  predicted: -1,
  sort: "order",
  reversed: false,
};

export const SORTS = {
  order: ["data order", (data, i) => i],
  loss: ["highest loss", (data, i) => -data.list.loss[i]],
  confidence: ["lowest confidence", (data, i) => data.list.confidence[i]],
  margin: ["smallest margin: label next", (data, i) => data.list.margin[i]],
  errors: ["most errors", (data, i) => -data.errors[i]],
  length: ["longest", (data, i) => -data.list.sizes[i]],
};

function pairAt(data, { gold, predicted }, wrong, i) {
  for (let v = data.offsets[i]; v < data.offsets[i + 1]; v++) {
    if (gold >= 0 && data.list.gold[v] !== gold) continue;
    if (predicted >= 0 && data.list.predicted[v] !== predicted) continue;
    if (wrong && (data.list.gold[v] === data.list.predicted[v] || data.list.gold[v] === data.unobserved))
      continue;
    return v - data.offsets[i];
  }
  return -1;
}

// Examples in order, and of each the position that the filters point at.
export function select(data, filters) {
  const find = data.own.contains(data) ? data.own.finder(data, filters.contains) : null;
  const pair = filters.gold >= 0 || filters.predicted >= 0;
  const items = [];
  const places = new Map();
  for (let i = 0; i < data.n; i++) {
    if (filters.wrong && data.errors[i] === 0) continue;
    if (filters.confidence < 1 && data.list.confidence[i] > filters.confidence) continue;
    if (pair) {
      const place = pairAt(data, filters, filters.wrong, i);
      if (place < 0) continue;
      places.set(i, place);
    }
    if (find) {
      const place = find(i);
      if (place < 0) continue;
      if (!pair) places.set(i, place);
    }
    items.push(i);
  }
  const [, key] = SORTS[filters.sort];
  if (filters.sort !== "order") {
    const keys = new Float64Array(data.n);
    for (const i of items) {
      const own = key(data, i);
      keys[i] = Number.isNaN(own) ? Infinity : own;
    }
    items.sort((i, j) => (keys[i] < keys[j] ? -1 : keys[i] > keys[j] ? 1 : i - j));
  }
  if (filters.reversed) items.reverse();
  return { items, places };
}
