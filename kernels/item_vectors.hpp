// Arrays among the attributes of tokens: of each name a block with a row of numbers per token.
//
// Blocks stand in the order in which names are met. Numbers stay float32 while all of a name are.
#pragma once

#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "binding.hpp"

namespace chordal {

struct VectorBlock {
    std::string name;
    std::size_t width;
    std::vector<std::int64_t> rows;  // the tokens that have it, in rising order
    std::vector<float> narrow;       // [rows * width], or
    std::vector<double> wide;        // the same, once a number came that is not float32
    bool is_narrow;

    void widen() {
        if (!is_narrow) return;
        wide.assign(narrow.begin(), narrow.end());
        narrow = {};
        is_narrow = false;
    }
};

// A view of an object's numbers; held while it lives.
class NumberView {
public:
    NumberView() = default;
    NumberView(const NumberView&) = delete;
    NumberView& operator=(const NumberView&) = delete;
    ~NumberView() { release(); }

    // False, with no error set, for what has no buffer.
    bool open(PyObject* value) {
        release();
        held_ = PyObject_GetBuffer(value, &view_, PyBUF_RECORDS_RO) == 0;
        if (!held_) PyErr_Clear();
        return held_;
    }
    int dimensions() const { return view_.ndim; }
    std::size_t size() const {
        return static_cast<std::size_t>(view_.shape ? view_.shape[0] : view_.len / view_.itemsize);
    }
    // The type of the numbers as a letter of Python's struct; 0 if it takes more to say it.
    char format() const {
        if (!view_.format) return 'B';
        return view_.format[0] && !view_.format[1] ? view_.format[0] : '\0';
    }

    // Appends the numbers; false if they are of another type than these.
    bool append_to(VectorBlock& block) const {
        if (format() != 'f') block.widen();
        switch (format()) {
            case 'f': return block.is_narrow ? append<float>(block.narrow) : append<float>(block.wide);
            case 'd': return append<double>(block.wide);
            case '?':
            case 'B': return append<unsigned char>(block.wide);
            case 'b': return append<signed char>(block.wide);
            case 'h': return append<short>(block.wide);
            case 'H': return append<unsigned short>(block.wide);
            case 'i': return append<int>(block.wide);
            case 'I': return append<unsigned int>(block.wide);
            case 'l': return append<long>(block.wide);
            case 'L': return append<unsigned long>(block.wide);
            case 'q': return append<long long>(block.wide);
            case 'Q': return append<unsigned long long>(block.wide);
            default: return false;
        }
    }

private:
    void release() {
        if (held_) PyBuffer_Release(&view_);
        held_ = false;
    }
    template <class From, class To>
    bool append(std::vector<To>& out) const {
        const auto* at = static_cast<const char*>(view_.buf);
        const Py_ssize_t stride = view_.strides ? view_.strides[0] : view_.itemsize;
        const std::size_t begin = out.size(), n = size();
        out.resize(begin + n);
        for (std::size_t k = 0; k < n; ++k, at += stride) {
            From number;  // which may not be aligned
            std::memcpy(&number, at, sizeof number);
            out[begin + k] = static_cast<To>(number);
        }
        return true;
    }

    Py_buffer view_{};
    bool held_ = false;
};

class ItemVectors {
public:
    bool empty() const { return blocks_.empty(); }
    void clear() { blocks_.clear(); }
    std::vector<VectorBlock>& blocks() { return blocks_; }

    // The block of a name, for one more row of this width.
    VectorBlock& block(std::string_view name, std::size_t width) {
        const std::size_t n = blocks_.size();
        for (std::size_t k = 0; k < n; ++k) {  // tokens have their names in the same order
            next_ = next_ + 1 < n ? next_ + 1 : 0;
            if (blocks_[next_].name == name) return blocks_[next_];
        }
        next_ = n;
        return blocks_.emplace_back(VectorBlock{std::string(name), width, {}, {}, {}, true});
    }

private:
    std::vector<VectorBlock> blocks_;
    std::size_t next_ = 0;  // the block that was asked for last
};

// Whether the last `width` numbers are finite.
inline bool all_finite(const VectorBlock& block) {
    const auto check = [&](const auto& numbers) {
        bool finite = true;
        for (std::size_t k = numbers.size() - block.width; k < numbers.size(); ++k)
            finite &= std::isfinite(numbers[k]);
        return finite;
    };
    return block.is_narrow ? check(block.narrow) : check(block.wide);
}

// In Python: the name, its rows, and their numbers [rows, width].
template <class T>
using Matrix = nb::ndarray<nb::numpy, T, nb::ndim<2>>;
using Vectors = std::tuple<std::string, nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>,
                           std::variant<Matrix<float>, Matrix<double>>>;

template <class T>
Matrix<T> matrix_of(std::vector<T>&& data, std::size_t width) {
    auto* kept = new std::vector<T>(std::move(data));
    kept->shrink_to_fit();
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return {kept->data(), {kept->size() / width, width}, owner};
}

inline std::vector<Vectors> vectors_of(ItemVectors& vectors) {
    std::vector<Vectors> out;
    for (VectorBlock& own : vectors.blocks()) {
        auto rows = array_of(std::move(own.rows));
        if (own.is_narrow)
            out.emplace_back(std::move(own.name), rows, matrix_of(std::move(own.narrow), own.width));
        else
            out.emplace_back(std::move(own.name), rows, matrix_of(std::move(own.wide), own.width));
    }
    return out;
}

}  // namespace chordal
