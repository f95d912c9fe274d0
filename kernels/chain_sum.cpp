// Sum-product on chains: log Z, marginals, entropy, probabilities of spans, exact samples.
//
// With the symbols of chain.hpp, for every chain:
//   log Z = Σ_t log c_t                       P(y_t = j) = A_t(j) B_t(j)
//   P(y_{t-1} = i, y_t = j) = A_{t-1}(i) M_t(i,j) V_t(j)
//   entropy = Σ_t H(y_t | y_{t-1}) = − Σ_t Σ_ij P(i,j) log (P(i,j) / P(i))
//   span: P(y_s ∈ S_s, …, y_e ∈ S_e) = Σ over labels of the sets, A_s into the span, B_e out
//   sample: y_{T-1} ~ A_{T-1}, then y_{t-1} | y_t ∝ A_{t-1}(i) M_t(i, y_t)
//
// Marginals of a tied table are summed over its edges: Σ_t A_{t-1}(i) V_t(j) is a matrix product,
// and M(i,j) multiplies it once.
#include <algorithm>
#include <utility>

#include "chain.hpp"

namespace chordal {

// Spans to be asked for, by example in ascending order; span k holds `length[k]` positions from
// `start[k]` on, and `allowed` lists, position by position, which labels it may have.
struct Spans {
    const std::int64_t* example;
    const std::int64_t* start;
    const std::int64_t* length;
    const std::uint8_t* allowed;
    std::size_t count;
};

CHORDAL_BOTH_ISAS(
    Outcome log_partition(const ChainBatch&, Domain, bool (*interrupted)(), double* out);
    Outcome marginals(const ChainBatch&, Domain, bool (*interrupted)(), const double* weight,
                      double* log_partition, double* unary, double* tables);
    Outcome entropy(const ChainBatch&, Domain, bool (*interrupted)(), double* out);
    Outcome span_log_probability(const ChainBatch&, Domain, bool (*interrupted)(), const Spans&,
                                 double* out);
    Outcome sample(const ChainBatch&, Domain, bool (*interrupted)(), const double* uniform,
                   std::size_t samples, std::size_t variables, std::int32_t* out);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

constexpr std::size_t kManyLabels = 48;  // whose table is read from the second cache

// Whether two chains have the same large table for every edge.
inline bool share_table(const Chain& p, const Chain& q) {
    return p.length > 1 && q.length > 1 && p.labels(0) >= kManyLabels && p.tied() && q.tied() &&
           p.table[0] == q.table[0];
}

// The forward pass of two chains that share a table, side by side. False if one of them is not as
// usual (nothing allowed, or close to underflow): each is then to be done alone.
inline Outcome forward_of_two(const Chain chain[2], Sweep<Scaled> sweep[2], Patience& patience) {
    const std::size_t n = chain[0].labels(0), stride = sweep[0].stride;
    const std::size_t common = std::min(chain[0].length, chain[1].length);
    for (std::size_t t = 0; t < common; ++t) {
        for (std::size_t k = 0; k < 2; ++k)
            if (!sweep[k].scale(chain[k], t)) return Outcome::range;
        if (t == 0) {
            for (std::size_t k = 0; k < 2; ++k)
                std::memcpy(sweep[k].a(0), sweep[k].e(0), padded(n) * sizeof(double));
        } else {
            const double* x[2] = {sweep[0].a(t - 1), sweep[1].a(t - 1)};
            double* y[2] = {sweep[0].a(t), sweep[1].a(t)};
            const TimesRow end[2] = {{sweep[0].e(t), sweep[0].inverse[t]},
                                     {sweep[1].e(t), sweep[1].inverse[t]}};
            product_of_two<Scaled>(x, sweep[0].tables.forward(t), y, n, n, stride, end);
        }
        for (std::size_t k = 0; k < 2; ++k)
            if (!sweep[k].settle(chain[k], t)) return Outcome::range;
        if (patience.spent(2 * stride * stride)) return Outcome::stopped;
    }
    for (std::size_t k = 0; k < 2; ++k) {
        const Outcome outcome = sweep[k].advance(chain[k], common, patience);
        if (outcome != Outcome::done) return outcome;
    }
    return Outcome::done;
}

// Runs body(example, chain, sweep), which says whether to go on, after a forward pass, scaled where
// that is safe; body_of_two(example, chains, sweeps) where two chains can go side by side.
template <class Body, class BodyOfTwo>
Outcome each_chain(const ChainBatch& batch, Domain domain, Patience& patience, Body body,
                   BodyOfTwo body_of_two) {
    Sweep<Scaled> scaled[2];
    Sweep<Log> logarithmic;
    for (std::size_t example = 0; example < batch.examples; ++example) {
        const Chain chain = batch.chain(example);
        if (domain != Domain::logarithm && example + 1 < batch.examples) {
            const Chain both[2] = {chain, batch.chain(example + 1)};
            if (share_table(both[0], both[1]) &&
                scaled[0].begin(batch, both[0]) == Outcome::done &&
                scaled[1].begin(batch, both[1]) == Outcome::done) {
                const Outcome outcome = forward_of_two(both, scaled, patience);
                if (outcome == Outcome::stopped) return outcome;
                if (outcome == Outcome::done) {
                    if (!body_of_two(example, both, scaled)) return Outcome::stopped;
                    ++example;
                    continue;
                }
            }
        }
        Outcome outcome = Outcome::range;
        if (domain != Domain::logarithm) {
            outcome = scaled[0].forward(batch, chain, patience);
            if (outcome == Outcome::done && !body(example, chain, scaled[0]))
                return Outcome::stopped;
        }
        if (outcome == Outcome::range && domain != Domain::scaled) {
            outcome = logarithmic.forward(batch, chain, patience);
            if (outcome == Outcome::done && !body(example, chain, logarithmic))
                return Outcome::stopped;
        }
        if (outcome != Outcome::done) return outcome;
    }
    return Outcome::done;
}
template <class Body>
Outcome each_chain(const ChainBatch& batch, Domain domain, Patience& patience, Body body) {
    return each_chain(batch, domain, patience, body,
                      [&](std::size_t example, const Chain chain[2], Sweep<Scaled> sweep[2]) {
                          return body(example, chain[0], sweep[0]) &&
                                 body(example + 1, chain[1], sweep[1]);
                      });
}

// Calls visit(t, B_t) from position `from` to the first, given B there; leaves V_t in the place of
// E_t. False if the user wants to stop. B and next are the rows to work in.
template <class S, class Visit>
bool backward_from(std::size_t from, const Chain& chain, Sweep<S>& sweep, double* B, double* next,
                   Patience& patience, Visit visit) {
    for (std::size_t t = from + 1; t-- > 0;) {
        visit(t, B);
        if (t == 0) break;
        sweep.message(chain, t, B, sweep.e(t), next);
        std::swap(B, next);
        if (patience.spent(sweep.stride * sweep.stride)) return false;
    }
    return true;
}

template <class S, class Visit>
bool backward(const Chain& chain, Sweep<S>& sweep, Scratch& rows, Patience& patience,
              Visit visit) {
    if (chain.length == 0) return true;
    rows.resize(2 * sweep.stride);
    double* B = rows.data();
    double* next = B + sweep.stride;
    for (std::size_t j = 0; j < sweep.stride; ++j) B[j] = next[j] = sweep.inverse[chain.length];
    return backward_from(chain.length - 1, chain, sweep, B, next, patience, visit);
}

// The same for two chains that share a table: visit(k, t, B_t), k = 0, 1.
template <class Visit>
bool backward_of_two(const Chain chain[2], Sweep<Scaled> sweep[2], Scratch& rows,
                     Patience& patience, Visit visit) {
    const std::size_t n = chain[0].labels(0), stride = sweep[0].stride;
    rows.resize(4 * stride);
    double* B[2] = {rows.data(), rows.data() + stride};
    double* next[2] = {rows.data() + 2 * stride, rows.data() + 3 * stride};
    for (std::size_t k = 0; k < 2; ++k)
        for (std::size_t j = 0; j < stride; ++j)
            B[k][j] = next[k][j] = sweep[k].inverse[chain[k].length];
    std::size_t t[2] = {chain[0].length - 1, chain[1].length - 1};
    const Plain end[2];
    while (t[0] > 0 && t[1] > 0) {
        const double* V[2] = {sweep[0].e(t[0]), sweep[1].e(t[1])};
        for (std::size_t k = 0; k < 2; ++k) {
            visit(k, t[k], B[k]);
            sweep[k].weigh(chain[k], t[k], B[k], sweep[k].e(t[k]));
        }
        product_of_two<Scaled>(V, sweep[0].tables.backward(chain[0], t[0]), next, n, n, stride, end);
        for (std::size_t k = 0; k < 2; ++k) {
            std::swap(B[k], next[k]);
            --t[k];
        }
        if (patience.spent(2 * stride * stride)) return false;
    }
    for (std::size_t k = 0; k < 2; ++k) {
        const auto visit_one = [&](std::size_t at, const double* b) { visit(k, at, b); };
        if (!backward_from(t[k], chain[k], sweep[k], B[k], next[k], patience, visit_one))
            return false;
    }
    return true;
}

// G(i,j) += weight * Σ_t A_{t-1}(i) V_t(j) for 4 rows i and N packs of columns j, which stay in
// registers while t runs over positions first .. last - 1.
template <std::size_t N>
CHORDAL_INLINE void add_block(const Sweep<Scaled>& sweep, std::size_t first, std::size_t last,
                              std::size_t i, std::size_t j, Pack weight, double* G) {
    Pack sum[4][N];
    CHORDAL_UNROLL
    for (std::size_t k = 0; k < 4; ++k)
        CHORDAL_UNROLL
        for (std::size_t n = 0; n < N; ++n) sum[k][n] = broadcast(0.0);
    const double* a = sweep.a(first - 1) + i;
    const double* v = sweep.e(first) + j;
    for (std::size_t t = first; t < last; ++t, a += sweep.stride, v += sweep.stride) {
        Pack row[N];
        CHORDAL_UNROLL
        for (std::size_t n = 0; n < N; ++n) row[n] = load(v + n * kLanes);
        CHORDAL_UNROLL
        for (std::size_t k = 0; k < 4; ++k) {
            const Pack x = broadcast(a[k]);
            CHORDAL_UNROLL
            for (std::size_t n = 0; n < N; ++n) sum[k][n] = x * row[n] + sum[k][n];
        }
    }
    CHORDAL_UNROLL
    for (std::size_t k = 0; k < 4; ++k)
        CHORDAL_UNROLL
        for (std::size_t n = 0; n < N; ++n) {
            double* g = G + (i + k) * sweep.stride + j + n * kLanes;
            store(g, sum[k][n] * weight + load(g));
        }
}

// The same for all i and j; 64 positions at a time stay in the first cache.
inline void add_outer_products(const Sweep<Scaled>& sweep, std::size_t length, double weight,
                               double* G) {
    const std::size_t stride = sweep.stride;
    const Pack w = broadcast(weight);
    for (std::size_t first = 1; first < length; first += 64) {
        const std::size_t last = first + 64 < length ? first + 64 : length;
        for (std::size_t j = 0; j < stride; j += 3 * kLanes) {
            const std::size_t packs = (stride - j) / kLanes;
            for (std::size_t i = 0; i < stride; i += 4) {
                if (packs >= 3)
                    add_block<3>(sweep, first, last, i, j, w, G);
                else if (packs == 2)
                    add_block<2>(sweep, first, last, i, j, w, G);
                else
                    add_block<1>(sweep, first, last, i, j, w, G);
            }
        }
    }
}

// Sums for a tied table, kept over the chains that share it; M multiplies them at the end.
class TiedSums {
public:
    TiedSums(const ChainBatch& batch, double* tables) : batch_(batch), tables_(tables) {}

    void add(const Sweep<Scaled>& sweep, const Chain& chain, double weight) {
        if (id_ != chain.table[0] || stride_ != sweep.stride) {
            flush();
            id_ = chain.table[0];
            stride_ = sweep.stride;
            rows_ = chain.labels(0);
            columns_ = chain.labels(1);
            G_.resize(stride_ * stride_);
            std::memset(G_.data(), 0, stride_ * stride_ * sizeof(double));
        }
        add_outer_products(sweep, chain.length, weight, G_.data());
    }
    void flush() {
        if (id_ < 0) return;
        EnteredTable<Scaled> table;
        Scratch M(rows_ * stride_);
        table.enter(batch_.tables + batch_.table_offsets[id_], rows_, columns_, stride_, M.data());
        double* out = tables_ + batch_.table_offsets[id_];
        for (std::size_t i = 0; i < rows_; ++i)
            for (std::size_t j = 0; j < columns_; ++j)
                out[i * columns_ + j] += M[i * stride_ + j] * G_[i * stride_ + j];
        id_ = -1;
    }

private:
    const ChainBatch& batch_;
    double* tables_;
    Scratch G_;
    std::int32_t id_ = -1;
    std::size_t stride_ = 0, rows_ = 0, columns_ = 0;
};

// out(i,j) += weight * P(y_{t-1} = i, y_t = j), edge by edge.
template <class S>
bool add_edges(const ChainBatch& batch, const Chain& chain, Sweep<S>& sweep, double weight,
               Patience& patience, double* tables) {
    for (std::size_t t = 1; t < chain.length; ++t) {
        const std::size_t rows = chain.labels(t - 1), columns = chain.labels(t);
        double* out = tables + batch.table_offsets[chain.table[t - 1]];
        const double* V = sweep.e(t);
        for (std::size_t i = 0; i < rows; ++i) {
            const double a = sweep.a(t - 1)[i];
            const double* m = sweep.tables.forward(t) + i * sweep.stride;
            for (std::size_t j = 0; j < columns; ++j)
                out[i * columns + j] +=
                    weight * S::probability(S::times(S::times(a, m[j]), V[j]));
        }
        if (patience.spent(rows * columns)) return false;
    }
    return true;
}

Outcome log_partition(const ChainBatch& batch, Domain domain, bool (*interrupted)(), double* out) {
    Patience patience(interrupted);
    return each_chain(batch, domain, patience,
                      [&](std::size_t example, const Chain&, const auto& sweep) {
                          out[example] = sweep.log_partition;
                          return true;
                      });
}

Outcome marginals(const ChainBatch& batch, Domain domain, bool (*interrupted)(),
                  const double* weight, double* log_partition, double* unary, double* tables) {
    Patience patience(interrupted);
    Scratch rows;
    TiedSums sums(batch, tables);
    const auto weight_of = [&](std::size_t example) { return weight ? weight[example] : 1.0; };
    const auto put = [&]<class S>(const Chain& chain, const Sweep<S>& sweep, double w,
                                  std::size_t t, const double* B) {
        const double* a = sweep.a(t);
        double* out = unary + chain.offsets[t];
        const std::size_t n = chain.labels(t);
        if (n < kLanes) {
            for (std::size_t j = 0; j < n; ++j) out[j] = w * S::probability(S::times(a[j], B[j]));
            return;
        }
        const Pack scale = broadcast(w);
        for (std::size_t j = 0; j < n - kLanes; j += kLanes)
            store(out + j, scale * S::probability(S::times(load(a + j), load(B + j))));
        const std::size_t j = n - kLanes;  // the end overlaps the rest
        store(out + j, scale * S::probability(S::times(load(a + j), load(B + j))));
    };
    const auto body = [&]<class S>(std::size_t example, const Chain& chain, Sweep<S>& sweep) {
        const double w = weight_of(example);
        log_partition[example] = sweep.log_partition;
        if (sweep.log_partition == -kInfinity) {
            for (auto k = chain.offsets[0]; k < chain.offsets[chain.length]; ++k) unary[k] = 0.0;
            return true;
        }
        const auto visit = [&](std::size_t t, const double* B) { put(chain, sweep, w, t, B); };
        if (!backward(chain, sweep, rows, patience, visit)) return false;
        if constexpr (S::kProbabilities) {
            if (chain.tied()) {
                sums.add(sweep, chain, w);
                return true;
            }
        }
        return add_edges(batch, chain, sweep, w, patience, tables);
    };
    const auto body_of_two = [&](std::size_t example, const Chain chain[2],
                                 Sweep<Scaled> sweep[2]) {
        const auto visit = [&](std::size_t k, std::size_t t, const double* B) {
            put(chain[k], sweep[k], weight_of(example + k), t, B);
        };
        if (!backward_of_two(chain, sweep, rows, patience, visit)) return false;
        for (std::size_t k = 0; k < 2; ++k) {
            log_partition[example + k] = sweep[k].log_partition;
            sums.add(sweep[k], chain[k], weight_of(example + k));
        }
        return true;
    };
    const Outcome outcome = each_chain(batch, domain, patience, body, body_of_two);
    sums.flush();
    return outcome;
}

Outcome entropy(const ChainBatch& batch, Domain domain, bool (*interrupted)(), double* out) {
    Patience patience(interrupted);
    Scratch rows;
    auto body = [&]<class S>(std::size_t example, const Chain& chain, Sweep<S>& sweep) {
        out[example] = 0.0;
        if (sweep.log_partition == -kInfinity || chain.length == 0) return true;
        // V_t stays in e(t); what is left of B after the loop is not needed.
        double first = 0.0;
        Scratch node(sweep.stride * chain.length);
        const bool go_on = backward(chain, sweep, rows, patience, [&](std::size_t t, const double* B) {
            for (std::size_t j = 0; j < chain.labels(t); ++j)
                node[t * sweep.stride + j] = S::probability(S::times(sweep.a(t)[j], B[j]));
        });
        if (!go_on) return false;
        for (std::size_t j = 0; j < chain.labels(0); ++j)
            if (node[j] > 0.0) first -= node[j] * std::log(node[j]);
        double conditional = 0.0;
        for (std::size_t t = 1; t < chain.length; ++t) {
            for (std::size_t i = 0; i < chain.labels(t - 1); ++i)
                for (std::size_t j = 0; j < chain.labels(t); ++j) {
                    const double m = sweep.tables.forward(t)[i * sweep.stride + j];
                    const double p = S::probability(
                        S::times(S::times(sweep.a(t - 1)[i], m), sweep.e(t)[j]));
                    if (p > 0.0)
                        conditional -= p * std::log(p / node[(t - 1) * sweep.stride + i]);
                }
            if (patience.spent(4 * sweep.stride * sweep.stride)) return false;
        }
        const double total = first + conditional;
        out[example] = total > 0.0 ? total : 0.0;  // rounding may leave −1e-17
        return true;
    };
    return each_chain(batch, domain, patience, body);
}

Outcome span_log_probability(const ChainBatch& batch, Domain domain, bool (*interrupted)(),
                             const Spans& spans, double* out) {
    Patience patience(interrupted);
    Scratch rows;
    std::size_t k = 0;
    const std::uint8_t* allowed = spans.allowed;
    auto body = [&]<class S>(std::size_t example, const Chain& chain, Sweep<S>& sweep) {
        if (k == spans.count || spans.example[k] != static_cast<std::int64_t>(example)) return true;
        const std::size_t stride = sweep.stride;
        Scratch B(stride * chain.length), E(stride * chain.length), x(2 * stride);
        const bool possible = sweep.log_partition != -kInfinity;
        if (possible) {
            std::memcpy(E.data(), sweep.e(0), stride * chain.length * sizeof(double));
            const bool go_on =
                backward(chain, sweep, rows, patience, [&](std::size_t t, const double* b) {
                    std::memcpy(B.data() + t * stride, b, stride * sizeof(double));
                });
            if (!go_on) return false;
        }
        for (; k < spans.count && spans.example[k] == static_cast<std::int64_t>(example); ++k) {
            const auto start = static_cast<std::size_t>(spans.start[k]);
            const auto end = start + static_cast<std::size_t>(spans.length[k]);
            double* now = x.data();
            double* next = now + stride;
            double log_probability = possible ? 0.0 : -kInfinity;
            for (std::size_t t = start; t < end; ++t) {
                const std::size_t n = chain.labels(t), width = padded(n);
                const std::uint8_t* mask = allowed;
                allowed += n;
                if (log_probability == -kInfinity) continue;
                if (t == start) {
                    std::memcpy(now, sweep.a(t), width * sizeof(double));
                } else {
                    S::product(now, sweep.tables.forward(t), next, chain.labels(t - 1), n, stride,
                               TimesRow{&E[t * stride], sweep.inverse[t]});
                    double* swap = now;
                    now = next;
                    next = swap;
                }
                for (std::size_t j = 0; j < n; ++j)
                    if (!mask[j]) now[j] = S::kZero;
                if (t + 1 == end)
                    for (std::size_t j = 0; j < n; ++j)
                        now[j] = S::times(now[j], B[t * stride + j]);
                const double total = S::total(now, width);
                if (total == S::kZero) {
                    log_probability = -kInfinity;
                    continue;
                }
                log_probability += S::logarithm(total);
                for (std::size_t j = 0; j < n; ++j) now[j] = S::divide(now[j], total);
                if (patience.spent(stride * stride)) return false;
            }
            out[k] = log_probability < 0.0 ? log_probability : 0.0;
        }
        return true;
    };
    return each_chain(batch, domain, patience, body);
}

Outcome sample(const ChainBatch& batch, Domain domain, bool (*interrupted)(),
               const double* uniform, std::size_t samples, std::size_t variables,
               std::int32_t* out) {
    Patience patience(interrupted);
    Scratch chances;
    auto body = [&]<class S>(std::size_t example, const Chain& chain, Sweep<S>& sweep) {
        const auto first = static_cast<std::size_t>(batch.variable_offsets[example]);
        if (sweep.log_partition == -kInfinity) return true;
        chances.resize(sweep.stride);
        double* chance = chances.data();
        for (std::size_t s = 0; s < samples; ++s) {
            const double* u = uniform + s * variables + first;
            std::int32_t* y = out + s * variables + first;
            for (std::size_t t = chain.length; t-- > 0;) {
                const std::size_t n = chain.labels(t), width = padded(n);
                std::memcpy(chance, sweep.a(t), width * sizeof(double));
                if (t + 1 < chain.length) {
                    const double* m = sweep.tables.forward(t + 1) + y[t + 1];
                    for (std::size_t i = 0; i < n; ++i)
                        chance[i] = S::times(chance[i], m[i * sweep.stride]);
                }
                const double total = S::total(chance, width);
                double rest = u[t];
                std::size_t pick = n;
                for (std::size_t i = 0; i < n; ++i) {
                    const double p = S::probability(S::divide(chance[i], total));
                    if (p > 0.0) {
                        pick = i;  // rounding may leave `rest` above the last one's share
                        rest -= p;
                        if (rest < 0.0) break;
                    }
                }
                y[t] = static_cast<std::int32_t>(pick);
                if (patience.spent(8 * sweep.stride)) return false;
            }
        }
        return true;
    };
    return each_chain(batch, domain, patience, body);
}

}  // namespace chordal::CHORDAL_ISA

#ifndef CHORDAL_ISA_V3
#include "chain_binding.hpp"

namespace chordal {

static const Binding binding([](nb::module_& m) {
    m.def(
        "chain_log_partition",
        [](CHORDAL_CHAIN_ARGUMENTS, const char* domain, Output<double> out) {
            run_chain([&](const ChainBatch& batch) {
                return CHORDAL_DISPATCH(
                    log_partition(batch, domain_of(domain), interrupted, out.data()));
            }, CHORDAL_CHAIN_VALUES);
        });
    m.def(
        "chain_marginals",
        [](CHORDAL_CHAIN_ARGUMENTS, const char* domain, std::optional<Input<double>> weight,
           Output<double> log_partition, Output<double> out_unary, Output<double> out_tables) {
            const double* w = weight ? weight->data() : nullptr;
            run_chain([&](const ChainBatch& batch) {
                return CHORDAL_DISPATCH(marginals(batch, domain_of(domain), interrupted, w,
                                                  log_partition.data(), out_unary.data(),
                                                  out_tables.data()));
            }, CHORDAL_CHAIN_VALUES);
        },
        CHORDAL_CHAIN_NAMES, nb::arg("domain"), nb::arg("weight").none(),
        nb::arg("log_partition"), nb::arg("out_unary"), nb::arg("out_tables"));
    m.def(
        "chain_entropy",
        [](CHORDAL_CHAIN_ARGUMENTS, const char* domain, Output<double> out) {
            run_chain([&](const ChainBatch& batch) {
                return CHORDAL_DISPATCH(
                    entropy(batch, domain_of(domain), interrupted, out.data()));
            }, CHORDAL_CHAIN_VALUES);
        });
    m.def(
        "chain_span_log_probability",
        [](CHORDAL_CHAIN_ARGUMENTS, const char* domain, Input<std::int64_t> example,
           Input<std::int64_t> start, Input<std::int64_t> length, Input<std::uint8_t> allowed,
           Output<double> out) {
            const Spans spans{example.data(), start.data(), length.data(), allowed.data(),
                              example.size()};
            run_chain([&](const ChainBatch& batch) {
                return CHORDAL_DISPATCH(span_log_probability(batch, domain_of(domain), interrupted,
                                                             spans, out.data()));
            }, CHORDAL_CHAIN_VALUES);
        });
    m.def(
        "chain_sample",
        [](CHORDAL_CHAIN_ARGUMENTS, const char* domain, Input<double> uniform,
           Output<std::int32_t> out) {
            const std::size_t variables = state_offsets.size() - 1;
            const std::size_t samples = variables ? uniform.size() / variables : 0;
            run_chain([&](const ChainBatch& batch) {
                return CHORDAL_DISPATCH(sample(batch, domain_of(domain), interrupted,
                                               uniform.data(), samples, variables, out.data()));
            }, CHORDAL_CHAIN_VALUES);
        });
});

}  // namespace chordal
#endif
