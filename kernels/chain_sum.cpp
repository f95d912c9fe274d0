// Sum-product on chains: log Z and marginals.
//
// With the symbols of chain.hpp, for every chain:
//   log Z = Σ_t log c_t                       P(y_t = j) = A_t(j) B_t(j)
//   P(y_{t-1} = i, y_t = j) = A_{t-1}(i) M_t(i,j) V_t(j)
//
// Marginals of a tied table are summed over its edges: Σ_t A_{t-1}(i) V_t(j) is a matrix product,
// and M(i,j) multiplies it once.
#include "chain_passes.hpp"

namespace chordal {

CHORDAL_BOTH_ISAS(
    Outcome log_partition(const ChainBatch&, Domain, bool (*interrupted)(), double* out);
    Outcome marginals(const ChainBatch&, Domain, bool (*interrupted)(), const double* weight,
                      double* log_partition, double* unary, double* tables);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

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
    Listening listening;
    for (std::size_t first = 1; first < length; first += 64) {
        const std::size_t last = first + 64 < length ? first + 64 : length;
        for (std::size_t j = 0; j < stride; j += 3 * kLanes) {
            const std::size_t packs = (stride - j) / kLanes;
            listening.spend(128 * stride);
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
            Listening listening;
            for (std::size_t i = 0; i < stride_; ++i) {
                std::memset(G_.data() + i * stride_, 0, stride_ * sizeof(double));
                listening.spend(64 * stride_);
            }
        }
        add_outer_products(sweep, chain.length, weight, G_.data());
    }
    void flush() {
        if (id_ < 0) return;
        EnteredTable<Scaled> table;
        Scratch M(rows_ * stride_);
        table.enter(batch_.tables + batch_.table_offsets[id_], rows_, columns_, stride_, M.data());
        double* out = tables_ + batch_.table_offsets[id_];
        Listening listening;
        for (std::size_t i = 0; i < rows_; ++i, listening.spend(64 * columns_))
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
bool add_edges(const ChainBatch& batch, const Chain& chain, Sweep<Scaled>& sweep, double weight,
               Patience& patience, double* tables) {
    for (std::size_t t = 1; t < chain.length; ++t) {
        const std::size_t rows = chain.labels(t - 1), columns = chain.labels(t);
        double* out = tables + batch.table_offsets[chain.table[t - 1]];
        const double* V = sweep.e(t);
        for (std::size_t i = 0; i < rows; ++i) {
            const double a = sweep.a(t - 1)[i];
            const double* m = sweep.tables.forward(t) + i * sweep.stride;
            for (std::size_t j = 0; j < columns; ++j)
                out[i * columns + j] += weight * (a * m[j] * V[j]);
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
    const auto put = [&](const Chain& chain, const Sweep<Scaled>& sweep, double w, std::size_t t,
                         const double* B) {
        write_marginals(chain, sweep, w, t, B, unary + chain.offsets[t]);
    };
    const auto body = [&]<class S>(std::size_t example, const Chain& chain, Sweep<S>& sweep) {
        const double w = weight_of(example);
        log_partition[example] = sweep.log_partition;
        if (sweep.log_partition == -kInfinity) {
            for (auto k = chain.offsets[0]; k < chain.offsets[chain.length]; ++k) unary[k] = 0.0;
            return true;
        }
        if constexpr (S::kProbabilities) {
            const auto visit = [&](std::size_t t, const double* B) { put(chain, sweep, w, t, B); };
            if (!backward(chain, sweep, rows, patience, visit)) return false;
            if (!chain.tied()) return add_edges(batch, chain, sweep, w, patience, tables);
            sums.add(sweep, chain, w);
            return true;
        } else {
            const auto node = [&](std::size_t t, const double* P) {
                double* out = unary + chain.offsets[t];
                for (std::size_t j = 0; j < chain.labels(t); ++j) out[j] = w * P[j];
            };
            const auto edge = [&](std::size_t t, std::size_t i, const double* P) {
                const std::size_t n = chain.labels(t);
                double* out = tables + batch.table_offsets[chain.table[t - 1]] + i * n;
                for (std::size_t j = 0; j < n; ++j) out[j] += w * P[j];
            };
            return Conditionals(chain, sweep).run(patience, node, edge);
        }
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
    if (outcome == Outcome::done) sums.flush();
    return outcome;
}

}  // namespace chordal::CHORDAL_ISA

#ifndef CHORDAL_ISA_V3
#include "chain_binding.hpp"

namespace chordal {

static const Binding binding([](nb::module_& m) {
    m.def(
        "chain_log_partition",
        [](const BoundScores& scores, const char* domain, Output<double> out) {
            run_chain(scores, [&](const ChainBatch& batch) {
                return CHORDAL_DISPATCH(
                    log_partition(batch, domain_of(domain), interrupted, out.data()));
            });
        },
        nb::arg("scores"), nb::arg("domain"), nb::arg("out"));
    // The parts' unary may be the memory of the scores'; their tables hold zeros.
    m.def(
        "chain_marginals",
        [](const BoundScores& scores, const BoundParts& parts, const char* domain, Weight weight,
           Output<double> log_partition) {
            run_chain(scores, [&](const ChainBatch& batch) {
                return CHORDAL_DISPATCH(marginals(batch, domain_of(domain), interrupted,
                                                  data_of(weight), log_partition.data(),
                                                  parts.unary, parts.tables));
            });
        },
        nb::arg("scores"), nb::arg("parts"), nb::arg("domain"), nb::kw_only(),
        nb::arg("weight").none(), nb::arg("log_partition"));
});

}  // namespace chordal
#endif
