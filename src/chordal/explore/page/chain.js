// Sums over all labellings of a chain: messages from the left and from the right, in log space.

// log Σ exp of n numbers given by a function.
function logSum(n, value) {
  let high = -Infinity;
  for (let a = 0; a < n; a++) high = Math.max(high, value(a));
  if (high === -Infinity) return high;
  let sum = 0;
  for (let a = 0; a < n; a++) sum += Math.exp(value(a) - high);
  return high + Math.log(sum);
}

// node [size · n]: scores of labels. pair(t) [n · n]: scores of the step from t to t + 1.
// left[t·n + b] = log Σ over labels before t, right[t·n + a] = log Σ over labels after t.
export function messages(node, pair, size, n) {
  const left = new Float64Array(size * n);
  const right = new Float64Array(size * n);
  for (let t = 1; t < size; t++) {
    const table = pair(t - 1);
    const at = (t - 1) * n;
    for (let b = 0; b < n; b++)
      left[t * n + b] = logSum(n, (a) => left[at + a] + node[at + a] + table[a * n + b]);
  }
  for (let t = size - 2; t >= 0; t--) {
    const table = pair(t);
    const at = (t + 1) * n;
    for (let a = 0; a < n; a++)
      right[t * n + a] = logSum(n, (b) => table[a * n + b] + node[at + b] + right[at + b]);
  }
  const last = (size - 1) * n;
  return { left, right, logZ: logSum(n, (a) => left[last + a] + node[last + a]) };
}
