// The chain algorithms as functions, for kernels that bring batches of their own.
#pragma once

#include "chain_batch.hpp"
#include "simd.hpp"

namespace chordal {

CHORDAL_BOTH_ISAS(
    Outcome log_partition(const ChainBatch&, Domain, bool (*interrupted)(), double* out);
    Outcome marginals(const ChainBatch&, Domain, bool (*interrupted)(), const double* weight,
                      double* log_partition, double* unary, double* tables);
    Outcome marginals_derivative(const ChainBatch&, Domain, bool (*interrupted)(),
                                 const double* d_unary, const double* d_tables,
                                 const double* weight, double* log_partition, double* unary,
                                 double* tables);
    Outcome best_labelling(const ChainBatch&, bool (*interrupted)(), double* score,
                           std::int32_t* labels);
    Outcome sample(const ChainBatch&, Domain, bool (*interrupted)(), const double* uniform,
                   std::size_t samples, std::size_t variables, std::int32_t* out);)

// score[example * k + r], labels[r * variables + variable]
Outcome k_best(const ChainBatch&, std::size_t k, std::size_t variables, double* score,
               std::int32_t* labels);

}  // namespace chordal
