// Names and their ids: an open-addressing table over one block of bytes.
//
// Names are kept one after another (UTF-8) and found through slots of (tag, id), where the tag is
// a part of the hash. What takes time is cache misses: names are looked up by the hundred, in passes
// (hash, slot, offset, bytes) that each fetch what the next one reads.
//
// The three arrays may be borrowed from a file; they are copied before names are added. The slots of a file are
// those of `file_hash`, all others those of `keyed_hash`.
#pragma once

#include <bit>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "binding.hpp"
#include "hashing.hpp"
#include "simd.hpp"

namespace chordal {

class Vocabulary {
public:
    static constexpr std::uint32_t kAbsent = 0xFFFFFFFFu;
    struct Slot {
        std::uint32_t tag, id;
    };

    Vocabulary() : own_slots_(16, Slot{0, kAbsent}), own_offsets_(1, 0) { look_at_own(); }
    Vocabulary(const Vocabulary&) = delete;
    Vocabulary& operator=(const Vocabulary&) = delete;

    // Arrays that somebody else keeps, checked here: every id has one slot, and at least one slot
    // is free, without which a search would not end. That names are where their hashes say is
    // tried on some of them, since hashing all would take most of the time of opening a file.
    Vocabulary(Input<std::uint8_t> bytes, Input<std::int64_t> offsets, Input<std::uint32_t> slots)
        : owners_{nb::cast(bytes), nb::cast(offsets), nb::cast(slots)} {
        check_offsets(bytes, offsets);
        bytes_ = reinterpret_cast<const char*>(bytes.data());
        offsets_ = offsets.data();
        size_ = offsets.size() - 1;
        if (slots.size() == 0) {
            own();
            return;
        }
        n_slots_ = slots.size() / 2;
        if (slots.size() % 2 != 0 || n_slots_ == 0 || (n_slots_ & (n_slots_ - 1)) != 0)
            throw nb::value_error("the number of slots of names must be a power of two");
        slots_ = reinterpret_cast<const Slot*>(slots.data());
        std::size_t used = 0, run = 0, longest = 0;
        std::vector<bool> met(size_, false);
        for (std::size_t k = 0; k < n_slots_; ++k) {
            const std::uint32_t id = slots_[k].id;
            run = id == kAbsent ? 0 : run + 1;
            longest = run > longest ? run : longest;
            if (id == kAbsent) continue;
            if (id >= size_) throw nb::value_error("a slot of names is out of range");
            if (met[id]) throw nb::value_error("a name has two slots");
            met[id] = true;
            ++used;
        }
        if (longest > kLongRun) {  // names that were made to collide
            own();
            return;
        }
        bool good = used == size_ && used < n_slots_;
        const std::size_t step = size_ / 256 + 1;
        for (std::size_t id = 0; good && id < size_; id += step)
            good = slots_[slot_of(text(id), length(id), hash(text(id), length(id)))].id == id;
        if (!good) throw nb::value_error("the slots of names do not fit the names");
    }

    static void check_offsets(const Input<std::uint8_t>& bytes,
                              const Input<std::int64_t>& offsets) {
        const std::size_t n = offsets.size();
        if (n == 0 || offsets.data()[0] != 0 ||
            offsets.data()[n - 1] != static_cast<std::int64_t>(bytes.size()))
            throw nb::value_error("offsets of names do not fit their bytes");
        for (std::size_t i = 1; i < n; ++i)
            if (offsets.data()[i] < offsets.data()[i - 1])
                throw nb::value_error("offsets of names must not decrease");
    }

    std::size_t size() const { return size_; }

    // What `find` and `intern` take.
    std::uint64_t hash(const char* text, std::size_t length) const {
        return owners_.empty() ? keyed_hash(text, length) : file_hash(text, length);
    }

    // Three steps ahead of `find`: where the name's slot, its offset and its bytes should be.
    void prefetch_slot(std::uint64_t hash) const {
        CHORDAL_PREFETCH(&slots_[hash & (n_slots_ - 1)]);
    }
    void prefetch_offset(std::uint64_t hash) const {
        const Slot& slot = slots_[hash & (n_slots_ - 1)];
        if (slot.id != kAbsent) CHORDAL_PREFETCH(&offsets_[slot.id]);
    }
    void prefetch_bytes(std::uint64_t hash) const {
        const Slot& slot = slots_[hash & (n_slots_ - 1)];
        if (slot.id != kAbsent) CHORDAL_PREFETCH(bytes_ + offsets_[slot.id]);
    }

    std::uint32_t find(const char* text, std::size_t length, std::uint64_t hash) const {
        return slots_[slot_of(text, length, hash)].id;
    }
    // Before hashes of names that are to be interned are taken: those of borrowed slots differ.
    void own_all() {
        if (!owners_.empty()) own();
    }
    // Only after `own_all`. Throws std::length_error when ids run out.
    std::uint32_t intern(const char* text, std::size_t length, std::uint64_t hash) {
        std::size_t k = slot_of(text, length, hash);
        if (slots_[k].id != kAbsent) return slots_[k].id;
        if (4 * (size_ + 1) > 3 * n_slots_) {
            grow();
            k = slot_of(text, length, hash);
        }
        if (size_ >= 0x7FFFFFFFu) throw std::length_error("more than 2147483647 attributes");
        const auto id = static_cast<std::uint32_t>(size_);
        own_slots_[k] = Slot{tag_of(hash), id};
        own_bytes_.insert(own_bytes_.end(), text, text + length);
        own_offsets_.push_back(static_cast<std::int64_t>(own_bytes_.size()));
        look_at_own();
        return id;
    }
    // Gives back memory kept for growth.
    void shrink() {
        own_bytes_.shrink_to_fit();
        own_offsets_.shrink_to_fit();
        if (owners_.empty()) look_at_own();
    }
    const char* text(std::size_t id) const { return bytes_ + offsets_[id]; }
    std::size_t length(std::size_t id) const {
        return static_cast<std::size_t>(offsets_[id + 1] - offsets_[id]);
    }
    std::vector<std::uint8_t> bytes() const { return {bytes_, bytes_ + offsets_[size_]}; }
    std::vector<std::int64_t> offsets() const { return {offsets_, offsets_ + size_ + 1}; }
    // As a file has them; none where names were made to collide, and whoever reads it makes its own.
    std::vector<std::uint32_t> slots() const {
        const std::vector<Slot> made =
            owners_.empty() ? placed(n_slots_, file_hash) : std::vector<Slot>(slots_, slots_ + n_slots_);
        std::vector<std::uint32_t> flat(2 * made.size());
        if (!made.empty()) std::memcpy(flat.data(), made.data(), flat.size() * sizeof(std::uint32_t));
        return flat;
    }

private:
    static constexpr std::size_t kLongRun = 2000;  // 400 are usual among a million names

    static std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }

    std::size_t slot_of(const char* text, std::size_t length, std::uint64_t hash) const {
        const std::size_t mask = n_slots_ - 1;
        std::size_t k = hash & mask;
        while (slots_[k].id != kAbsent) {
            const std::uint32_t id = slots_[k].id;
            if (slots_[k].tag == tag_of(hash) && this->length(id) == length &&
                std::memcmp(this->text(id), text, length) == 0)
                return k;
            k = (k + 1) & mask;
        }
        return k;
    }
    // The slots of all names by a hash; none if a name would be far from where it belongs.
    std::vector<Slot> placed(std::size_t n, std::uint64_t (*hash)(const char*, std::size_t)) const {
        std::vector<Slot> slots(n, Slot{0, kAbsent});
        const std::size_t mask = n - 1;
        for (std::size_t id = 0; id < size_; ++id) {
            const std::uint64_t h = hash(text(id), length(id));
            std::size_t k = h & mask, far = 0;
            for (; slots[k].id != kAbsent; k = (k + 1) & mask)
                if (++far > kLongRun && hash == file_hash) return {};
            slots[k] = Slot{tag_of(h), static_cast<std::uint32_t>(id)};
        }
        return slots;
    }
    void grow() {
        own_slots_ = placed(2 * n_slots_, keyed_hash);
        look_at_own();
    }
    void own() {
        own_slots_ = placed(std::bit_ceil(2 * size_ + 16), keyed_hash);
        own_bytes_.assign(bytes_, bytes_ + offsets_[size_]);
        own_offsets_.assign(offsets_, offsets_ + size_ + 1);
        {
            const GilHeld gil;  // templates are read without it
            owners_.clear();
        }
        look_at_own();
    }
    void look_at_own() {
        slots_ = own_slots_.data();
        n_slots_ = own_slots_.size();
        bytes_ = own_bytes_.data();
        offsets_ = own_offsets_.data();
        size_ = own_offsets_.size() - 1;
    }

    const Slot* slots_;
    const char* bytes_;
    const std::int64_t* offsets_;
    std::size_t n_slots_, size_;
    std::vector<Slot> own_slots_;
    std::vector<char> own_bytes_;
    std::vector<std::int64_t> own_offsets_;
    std::vector<nb::object> owners_;  // of borrowed arrays
};

// Names that wait to be looked up together.
class NameBatch {
public:
    std::string text;  // append a name here, then `finish` it

    void finish() {
        names_.push_back({nullptr, begin_, text.size() - begin_, 0});
        begin_ = text.size();
    }
    // A name that stays where it is until then.
    void add(std::string_view name) { names_.push_back({name.data(), 0, name.size(), 0}); }
    std::size_t size() const { return names_.size(); }

    // Visits the id of each name in turn, kAbsent if it has none; the vocabulary may grow by them.
    template <class Visit>
    void look_up(Vocabulary& vocabulary, bool grow, Visit visit) {
        if (grow) vocabulary.own_all();
        for (Name& name : names_) {
            if (!name.at) name.at = text.data() + name.begin;
            name.hash = vocabulary.hash(name.at, name.size);
            vocabulary.prefetch_slot(name.hash);
        }
        for (const Name& name : names_) vocabulary.prefetch_offset(name.hash);
        for (const Name& name : names_) vocabulary.prefetch_bytes(name.hash);
        for (const Name& name : names_)
            visit(grow ? vocabulary.intern(name.at, name.size, name.hash)
                       : vocabulary.find(name.at, name.size, name.hash));
        clear();
    }
    void clear() {
        text.clear();
        begin_ = 0;
        names_.clear();
    }

private:
    struct Name {
        const char* at;  // null: at `begin` of the text, which may still move
        std::size_t begin, size;
        std::uint64_t hash;
    };
    std::size_t begin_ = 0;
    std::vector<Name> names_;
};

// Rows of names on their way to ids. Unknown names are dropped unless the vocabulary may grow.
class Names {
public:
    Names(Vocabulary& vocabulary, bool grow) : vocabulary_(vocabulary), grow_(grow) {}

    std::vector<std::int32_t> ids;
    std::vector<double> values;  // empty while every value is 1
    std::vector<std::int64_t> row_offsets{0};

    std::string& text() { return batch_.text; }  // append a name here, then `finish` it
    void finish(double value = 1.0) {
        batch_.finish();
        waiting_.push_back(value);
    }
    // A name that stays where it is until it is looked up.
    void add(std::string_view name, double value) {
        batch_.add(name);
        waiting_.push_back(value);
    }
    void end_row() {
        ends_.push_back(batch_.size());
        if (batch_.size() >= kTogether) look_up();
    }
    // Forgets what was read; the memory is kept.
    void clear() {
        ids.clear();
        values.clear();
        row_offsets.assign(1, 0);
        batch_.clear();
        waiting_.clear();
        ends_.clear();
    }
    // To be called once more at the end.
    void look_up() {
        std::size_t k = 0;
        auto row = ends_.begin();
        batch_.look_up(vocabulary_, grow_, [&](std::uint32_t id) {
            for (; k == *row; ++row) end_ids();
            if (id != Vocabulary::kAbsent) take(id, waiting_[k]);
            ++k;
        });
        for (; row != ends_.end(); ++row) end_ids();
        waiting_.clear();
        ends_.clear();
    }

private:
    static constexpr std::size_t kTogether = 256;

    void end_ids() { row_offsets.push_back(static_cast<std::int64_t>(ids.size())); }
    void take(std::uint32_t id, double value) {
        if (value != 1.0 && values.empty()) values.assign(ids.size(), 1.0);
        ids.push_back(static_cast<std::int32_t>(id));
        if (!values.empty() || value != 1.0) values.push_back(value);
    }

    Vocabulary& vocabulary_;
    const bool grow_;
    NameBatch batch_;
    std::vector<double> waiting_;    // values of the names that wait
    std::vector<std::size_t> ends_;  // of the rows among them
};

}  // namespace chordal
