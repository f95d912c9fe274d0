// Where the nodes of a graph are drawn: where the data say, else by springs along edges.

const STEPS = 150;

function fitted(points, size) {
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  const [left, top] = [Math.min(...xs), Math.min(...ys)];
  const [width, height] = [Math.max(...xs) - left, Math.max(...ys) - top];
  const scale = size / Math.max(width, height, 1e-9);
  const shift = [(size - width * scale) / 2, (size - height * scale) / 2];
  return points.map(([x, y]) => [(x - left) * scale + shift[0], (y - top) * scale + shift[1]]);
}

// Nodes push each other away, and edges pull (Fruchterman and Reingold); the start is a circle.
function springs(n, edges) {
  const points = Array.from({ length: n }, (_, k) => {
    const angle = (2 * Math.PI * k) / n;
    return [Math.cos(angle), Math.sin(angle)];
  });
  const near = 1.8 / Math.sqrt(n);
  for (let step = 0; step < STEPS; step++) {
    const moves = points.map(() => [0, 0]);
    const push = (a, b, force) => {
      const [dx, dy] = [points[a][0] - points[b][0], points[a][1] - points[b][1]];
      const far = Math.max(Math.hypot(dx, dy), 1e-3);
      const by = force(far) / far;
      moves[a][0] += dx * by;
      moves[a][1] += dy * by;
      moves[b][0] -= dx * by;
      moves[b][1] -= dy * by;
    };
    for (let a = 0; a < n; a++) for (let b = 0; b < a; b++) push(a, b, (far) => (near * near) / far);
    for (const [a, b] of edges) push(a, b, (far) => (-far * far) / near);
    const most = 0.12 * (1 - step / STEPS) + 0.002;
    points.forEach((point, k) => {
      const length = Math.max(Math.hypot(...moves[k]), 1e-9);
      point[0] += (moves[k][0] / length) * Math.min(length, most) - point[0] * 0.01;
      point[1] += (moves[k][1] / length) * Math.min(length, most) - point[1] * 0.01;
    });
  }
  return points;
}

// Points of all nodes within a square of this size.
export function layout(n, edges, positions, size) {
  if (n === 1) return [[size / 2, size / 2]];
  return fitted(positions ?? springs(n, edges), size);
}
