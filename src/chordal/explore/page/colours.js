// Colours of labels: those of one type ("B-NP", "I-NP") share one. Text always says the same.

// Okabe and Ito's palette: safe for colour-blind readers. The style sheet has the same as --c0 … --c7.
const PALETTE = [
  [0, 114, 178],
  [230, 159, 0],
  [0, 158, 115],
  [204, 121, 167],
  [86, 180, 233],
  [213, 94, 0],
  [148, 128, 30],
  [110, 110, 110],
];

export function labelColours(labels) {
  const types = new Map();
  return labels.map((label) => {
    if (label === "O") return 7;
    const type = label.replace(/^[BIESLU]-/, "");
    if (!types.has(type)) types.set(type, types.size % 7);
    return types.get(type);
  });
}

export function rgb(colour) {
  return PALETTE[colour];
}
