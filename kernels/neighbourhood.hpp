// The neighbours of a variable while others are eliminated: sorted, and cheap to change however many.
//
// A short list is kept as it is. In a long one, what goes is only counted, and what comes waits in a
// second list of at most about √n: both are settled when they have grown, so that a change takes
// O(√n) at the worst, and O(log n) where nothing comes. Those that have gone are known to all lists by a
// mark, and never come back; they matter only where two lists are compared.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

namespace chordal {

using Neighbours = std::vector<std::int32_t>;  // sorted
using Marks = std::vector<char>;

inline void insert(Neighbours& all, std::int32_t v) {
    all.insert(std::lower_bound(all.begin(), all.end(), v), v);
}
inline void erase(Neighbours& all, std::int32_t v) {
    all.erase(std::lower_bound(all.begin(), all.end(), v));
}

// What is in both lists, in O(shorter · log longer) where one is much the shorter.
template <class Each>
void for_common(const Neighbours& a, const Neighbours& b, Each each) {
    if (a.size() > b.size()) return for_common(b, a, each);
    auto j = b.begin();
    const bool lopsided = b.size() > 16 * a.size();
    for (const auto v : a) {
        if (lopsided) {
            j = std::lower_bound(j, b.end(), v);
        } else {
            while (j != b.end() && *j < v) ++j;
        }
        if (j == b.end()) return;
        if (*j == v) each(v);
    }
}

class Neighbourhood {
public:
    Neighbourhood() = default;
    explicit Neighbourhood(Neighbours all) : settled_(std::move(all)), size_(settled_.size()) {}

    std::size_t size() const { return size_; }

    bool has(std::int32_t v) const {
        return std::binary_search(settled_.begin(), settled_.end(), v) ||
               std::binary_search(recent_.begin(), recent_.end(), v);
    }

    // One that is not there yet.
    void add(std::int32_t v, const Marks& gone) {
        ++size_;
        if (is_short()) return insert(settled_, v);
        insert(recent_, v);
        if (recent_.size() * recent_.size() > settled_.size()) settle(gone);
    }

    // One that is there and is marked.
    void remove(std::int32_t v, const Marks& gone) {
        --size_;
        if (is_short()) return erase(settled_, v);
        if (settled_.size() > 2 * size_) settle(gone);
    }

    // Exactly those that are left.
    void settle(const Marks& gone) {
        if (size_ == settled_.size() && recent_.empty()) return;
        Neighbours all;
        all.reserve(size_);
        std::merge(settled_.begin(), settled_.end(), recent_.begin(), recent_.end(), std::back_inserter(all));
        std::erase_if(all, [&](std::int32_t v) { return gone[v] != 0; });
        settled_ = std::move(all);
        recent_.clear();
    }

    // After settling.
    const Neighbours& all() const { return settled_; }

    // How many two have in common, each of which is given.
    template <class Each>
    static std::int64_t common(const Neighbourhood& a, const Neighbourhood& b, const Marks& gone, Each each) {
        std::int64_t count = 0;
        const auto left = [&](std::int32_t v) {
            if (gone[v]) return;
            each(v);
            ++count;
        };
        for (const auto* of_a : {&a.settled_, &a.recent_})
            for (const auto* of_b : {&b.settled_, &b.recent_}) for_common(*of_a, *of_b, left);
        return count;
    }

private:
    static constexpr std::size_t kShort = 256;

    bool is_short() const { return settled_.size() < kShort && recent_.empty(); }

    Neighbours settled_, recent_;
    std::size_t size_ = 0;
};

}  // namespace chordal
