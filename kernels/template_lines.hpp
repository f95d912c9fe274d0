// The lines of a feature template, and the names that they give.
//
// A line is a list of items: a literal, or a macro on the cell at (row offset, column): itself (x),
// whether a pattern is found in it (t), what the pattern found (m), or its shape (s). The values of
// a line's items, one after another, are the attribute's name.
#pragma once

#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "binding.hpp"
#include "pattern.hpp"

namespace chordal {

// The row that an offset means at position t: an absolute one counts from an end, from one on.
inline std::int64_t row_of(std::int64_t offset, bool absolute, std::int64_t t, std::int64_t length) {
    return offset + (absolute ? (offset < 0 ? length : -1) : t);
}

struct Item {
    char kind;
    bool small, absolute;
    std::int64_t offset;
    std::size_t column;
    std::string literal;  // or pattern

    bool is_literal() const { return kind == 'l'; }
};

// A sequence of a batch whose token t, column k is text[limits[2 (t n_columns + k)] .. limits[… + 1]).
struct Sequence {
    const char* text;
    const std::uint32_t* limits;
    std::size_t n_columns;
    std::int64_t first, length;  // tokens

    bool holds(std::int64_t row) const { return row >= 0 && row < length; }
    std::string_view cell(std::int64_t row, std::size_t column) const {
        const std::uint32_t* cell =
            limits + 2 * (static_cast<std::size_t>(first + row) * n_columns + column);
        return {text + cell[0], cell[1] - cell[0]};
    }
    // CRF++ calls what lies outside _B-1, _B+1 and so on; Wapiti _x-1, and from five on _x-#.
    std::string outside(std::int64_t row, bool wapiti) const {
        const std::int64_t distance = row < 0 ? -row : row - length + 1;
        std::ostringstream name;
        name << (wapiti ? "_x" : "_B") << (row < 0 ? '-' : '+');
        if (wapiti && distance > 4)
            name << '#';
        else
            name << distance;
        return name.str();
    }
};

// The lines of a template: what they look at, and the names they give.
class Lines {
public:
    // Each item is kind, small letters, absolute, offset, column, and where its literal or pattern
    // lies in `pool`; each line ends at an item.
    Lines(const Input<std::int64_t>& items, const Input<std::int64_t>& line_ends, const char* pool) {
        const std::int64_t* row = items.data();
        for (std::size_t line = 0, k = 0; line < line_ends.size(); ++line) {
            lines_.emplace_back();
            for (; k < static_cast<std::size_t>(line_ends.data()[line]); ++k, row += 7)
                lines_.back().push_back({static_cast<char>(row[0]), row[1] != 0, row[2] != 0, row[3],
                                         static_cast<std::size_t>(row[4]),
                                         std::string(pool + row[5], pool + row[6])});
        }
    }
    virtual ~Lines() = default;

    std::size_t size() const { return lines_.size(); }
    const std::vector<Item>& operator[](std::size_t line) const { return lines_[line]; }

    // Appends the name that a line gives at position t.
    virtual void name(std::size_t line, const Sequence& x, std::int64_t t, std::string& out) const = 0;

private:
    std::vector<std::vector<Item>> lines_;
};

template <class Text>
class LinesOf final : public Lines {
public:
    LinesOf(const Input<std::int64_t>& items, const Input<std::int64_t>& line_ends, const char* pool)
        : Lines(items, line_ends, pool) {
        for (std::size_t line = 0; line < size(); ++line) {
            patterns_.emplace_back();
            for (const Item& item : (*this)[line])
                patterns_.back().emplace_back(item.literal.data(),
                                              item.literal.data() + item.literal.size());
        }
    }

    void name(std::size_t line, const Sequence& x, std::int64_t t, std::string& out) const override {
        const auto& items = (*this)[line];
        for (std::size_t k = 0; k < items.size(); ++k) {
            const std::int64_t row = row_of(items[k].offset, items[k].absolute, t, x.length);
            if (items[k].is_literal())
                out += items[k].literal;
            else if (x.holds(row))
                value(items[k], patterns_[line][k], x.cell(row, items[k].column), out);
            else
                value(items[k], patterns_[line][k],
                      x.outside(row, std::is_same_v<Text, Bytes>), out);
        }
    }

private:
    static void value(const Item& item, const Pattern<Text>& pattern, std::string_view cell,
                      std::string& out) {
        const std::size_t before = out.size();
        const char *begin = cell.data(), *end = begin + cell.size(), *first = begin, *last = end;
        switch (item.kind) {
            case 't': out += pattern.find(begin, end, first, last) ? "true" : "false"; return;
            case 's': append_shape<Text>(begin, end, out); break;
            case 'm':
                if (!pattern.find(begin, end, first, last)) return;
                [[fallthrough]];
            default: out.append(first, last);
        }
        if (item.small) to_lower(before, out);
    }
    static void to_lower(std::size_t from, std::string& out) {
        bool ascii = true;
        for (std::size_t k = from; k < out.size(); ++k) {
            if (static_cast<unsigned char>(out[k]) >= 0x80) ascii = false;
            if (out[k] >= 'A' && out[k] <= 'Z') out[k] = static_cast<char>(out[k] + 32);
        }
        if (ascii || std::is_same_v<Text, Bytes>) return;
        const std::string copy(out, from);
        out.resize(from);
        for (const char *p = copy.data(), *end = p + copy.size(); p < end;) {
            const Character c = Text::at(p, end);
            if (c.size == 1)
                out.push_back(*p);
            else
                Text::append(Text::to_lower(c.code), out);
            p += c.size;
        }
    }

    std::vector<std::vector<Pattern<Text>>> patterns_;  // of the items
};

}  // namespace chordal
