// CRFsuite's items: a block of bytes in, where attributes and their values are out.
//
//   @weight:2           before a label: of the sequence, for training
//   label  name  name:value …       a row: fields between tabs, empty ones skipped
//                       a line of nothing but spaces and tabs ends the sequence
//
// A backslash before a colon or a backslash takes away its meaning. A name without a value, or with
// an empty one, has the value 1. Text is UTF-8, lines end with LF or CRLF.
//
// A block may end anywhere. What follows the last finished sequence is left to the next block, unless
// this one is the last. This reader says which line it cannot read, and formats/crfsuite.py why.
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "binding.hpp"
#include "text_check.hpp"

namespace chordal {
namespace {

using std::size_t;

class ItemReader {
public:
    explicit ItemReader(std::string_view text) : text_(text) {}

    void read(bool at_end) {
        const size_t last = at_end ? text_.size() : text_.rfind('\n') + 1;  // npos + 1 is 0
        const size_t bad = find_bad_byte(text_.substr(0, last));
        fields.reserve(last / 4);
        size_t begin = 0;
        for (std::int64_t line = 0; begin < last; ++line) {
            size_t end = text_.find('\n', begin);
            const size_t next = end == text_.npos ? text_.size() : end + 1;
            end = end == text_.npos ? text_.size() : end;
            if (end > begin && text_[end - 1] == '\r') --end;
            const bool good = bad >= next && read_line(begin, end);
            if (!good) {
                problem = line;
                return;
            }
            if (blank_) finish(next, line + 1);
            begin = next;
            lines = line + 1;
        }
        if (at_end) finish(text_.size(), lines);
    }

    std::vector<std::uint32_t> fields;              // begin and end of each attribute
    std::vector<std::uint32_t> labels;              // the same of the label of each row
    std::vector<double> weights;                    // of sequences; empty while all are 1
    std::vector<double> values;                     // of the fields; empty while all are 1
    std::vector<std::int64_t> offsets{0}, lengths;  // of rows, and rows of sequences
    size_t consumed = 0;
    std::int64_t lines = 0, consumed_lines = 0, problem = -1;

private:
    struct Field {
        size_t begin, end;  // the name's
        bool has_value;
        double value;
    };

    // False if there is something wrong with the line.
    bool read_line(size_t begin, size_t end) {
        blank_ = std::all_of(text_.begin() + static_cast<std::ptrdiff_t>(begin),
                             text_.begin() + static_cast<std::ptrdiff_t>(end),
                             [](char c) { return c == ' ' || c == '\t'; });
        if (blank_) return true;
        bool labelled = false;
        for (size_t at = begin; at < end;) {
            if (text_[at] == '\t') {
                ++at;
                continue;
            }
            Field field;
            if (!read_field(at, end, labelled || text_[at] == '@', field)) return false;
            if (labelled) {
                add(field);
            } else if (text_[field.begin] == '@') {
                if (text_.substr(field.begin, field.end - field.begin) != "@weight") return false;
                if (!field.has_value || field.value < 0.0) return false;
                weight_ = field.value;
            } else {
                labelled = true;
                labels.push_back(static_cast<std::uint32_t>(field.begin));
                labels.push_back(static_cast<std::uint32_t>(field.end));
            }
        }
        if (labelled) {
            offsets.push_back(static_cast<std::int64_t>(fields.size() / 2));
            ++length_;
        }
        return true;
    }

    // The first tab, colon or backslash from `at` on, eight bytes at once; or the end.
    size_t mark(size_t at, size_t end) const {
        for (; at + 8 <= end; at += 8) {
            std::uint64_t word;
            std::memcpy(&word, text_.data() + at, 8);
            const std::uint64_t found =
                zeros(word ^ kOnes * '\t') | zeros(word ^ kOnes * ':') | zeros(word ^ kOnes * '\\');
            if (found == 0) continue;
            if constexpr (std::endian::native != std::endian::little) break;
            return at + static_cast<size_t>(std::countr_zero(found)) / 8;
        }
        while (at < end && text_[at] != '\t' && text_[at] != ':' && text_[at] != '\\') ++at;
        return at;
    }

    // The field from `at` on, which moves to its end.
    bool read_field(size_t& at, size_t end, bool may_have_value, Field& field) const {
        field = {at, end, false, 1.0};
        size_t colon = text_.npos;
        for (at = mark(at, end); at < end && text_[at] != '\t'; at = mark(at + 1, end)) {
            if (text_[at] == '\\') {
                if (at + 1 < end && (text_[at + 1] == ':' || text_[at + 1] == '\\')) ++at;
            } else {
                if (colon != text_.npos || !may_have_value) return false;
                colon = at;
            }
        }
        field.end = colon == text_.npos ? at : colon;
        field.has_value = colon != text_.npos && colon + 1 < at;
        return !field.has_value || number(text_.substr(colon + 1, at - colon - 1), field.value);
    }

    // A decimal number as text; not "nan", "inf" or what overflows.
    static bool number(std::string_view text, double& value) {
        if (text.find_first_not_of("0123456789+-.eE") != text.npos) return false;
        const std::string copy(text);
        value = PyOS_string_to_double(copy.c_str(), nullptr, nullptr);
        if (PyErr_Occurred()) {
            PyErr_Clear();
            return false;
        }
        return std::isfinite(value);
    }

    void add(const Field& field) {
        if (field.value == 0.0) return;
        if (field.value != 1.0 && values.empty()) values.assign(fields.size() / 2, 1.0);
        fields.push_back(static_cast<std::uint32_t>(field.begin));
        fields.push_back(static_cast<std::uint32_t>(field.end));
        if (!values.empty() || field.value != 1.0) values.push_back(field.value);
    }
    void finish(size_t end, std::int64_t line) {
        if (length_ > 0) {
            if (weight_ != 1.0 && weights.empty()) weights.assign(lengths.size(), 1.0);
            if (weight_ != 1.0 || !weights.empty()) weights.push_back(weight_);
            lengths.push_back(length_);
        }
        length_ = 0;
        weight_ = 1.0;
        consumed = end;
        consumed_lines = line;
    }

    const std::string_view text_;
    std::int64_t length_ = 0;  // rows of the open sequence
    double weight_ = 1.0;      // of the open sequence
    bool blank_ = false;  // the line
};

}  // namespace

static const Binding binding([](nb::module_& m) {
    m.def(
        "items_read",
        [](nb::bytes text, bool at_end) {
            if (text.size() > 0xFFFFFFFFull)
                throw nb::value_error("a block of text must be smaller than 4 GiB");
            ItemReader r({text.c_str(), text.size()});
            r.read(at_end);
            // Rows of a sequence that goes on in the next block are read again there.
            std::int64_t rows = 0;
            for (const std::int64_t length : r.lengths) rows += length;
            const auto n_rows = static_cast<size_t>(rows);
            const auto n_fields = static_cast<size_t>(r.offsets[n_rows]);
            r.offsets.resize(n_rows + 1);
            r.fields.resize(2 * n_fields);
            if (!r.values.empty()) r.values.resize(n_fields);
            r.labels.resize(2 * n_rows);
            return std::make_tuple(array_of(std::move(r.fields)), array_of(std::move(r.values)),
                                   array_of(std::move(r.offsets)), array_of(std::move(r.lengths)),
                                   array_of(std::move(r.labels)), array_of(std::move(r.weights)),
                                   r.consumed, r.consumed_lines, r.problem);
        },
        nb::arg("text"), nb::arg("at_end"),
        "Begin and end of each attribute, values (none if all are 1), offsets of rows, lengths of "
        "sequences, begin and end of each row's label, weights of sequences (none if all are 1), "
        "bytes and lines consumed, and the line (from 0) that cannot be read, or -1.");
});

}  // namespace chordal
