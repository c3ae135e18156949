// SubModel: predicts the position of a key among the leaves of its part of the key space.
//
// Its input is the fraction that remains of the top model's prediction (top_model.h). Its output is a position in units
// of leaves: a key of logical leaf l should give a number in [l, l + 1). Training finds the line with the least maximal
// error over the *fences* of the leaves, so that the bounds hold for every key that a leaf covers, present or absent,
// and also at the borders of the sub-model. This generalises the paper's data augmentation (section 5.2.3).
//
//   first leaf to READ = floor(line(x) - under)        last = floor(line(x) + over)
//
// A perfect model has no errors and reads one leaf per lookup; otherwise it is about 1 + under + over.
//
// In a leaf that had n keys at training, the key of slot s should give a number in [l + s / n, l + (s + 1) / n).
// `spread` is the greatest distance of a present key from that; it determines the lines to READ for a present key
// (Slots).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

namespace gannet::index::xstore {

// Errors are stored in one byte: 0, or (8 + 3 bits) * 2^(5 bits) / 1024 leaves, rounded up.
double DecodeError(uint8_t code);
uint8_t EncodeError(double error);

// Bytes of a sub-model in a client's cache, without its table: the paper's 14 bytes, the spread, the place of the table
// and its version (client/cached_generation.h).
inline constexpr size_t kCachedSubModelBytes = 24;

struct SubModel {
  float slope = 0;  // leaves per unit of x
  float intercept = 0;
  uint8_t under = 0;
  uint8_t over = 0;
  uint8_t spread = 0;
  uint32_t size = 0;  // entries of its translation table; 0: not trained yet

  friend bool operator==(const SubModel&, const SubModel&) = default;

  struct Range {
    uint32_t first;
    uint32_t last;
  };

  // std::fma makes the rounding the same wherever this is inlined.
  double Line(double x) const { return std::fma(static_cast<double>(slope), x, static_cast<double>(intercept)); }
  Range Predict(double x) const {
    const double position = Line(x);
    return {Clamp(position - DecodeError(under)), Clamp(position + DecodeError(over))};
  }

  // Slots first .. last: where a key of logical leaf `leaf`, which had `count` keys at training, was then. Empty if
  // last < first.
  struct Slots {
    int first;
    int last;
  };
  Slots PredictSlots(double x, uint32_t leaf, uint32_t count) const {
    const double at = Line(x) - leaf;
    const double error = DecodeError(spread);
    const double low = (at - error) * count;
    const double high = (at + error) * count;
    const auto slots = static_cast<int>(count);
    return {low > 0 ? low < slots ? static_cast<int>(low) : slots : 0,
            high >= 0 ? high < slots ? static_cast<int>(high) : slots - 1 : -1};
  }

 private:
  uint32_t Clamp(double position) const {
    if (!(position > 0)) return 0;
    return position < size ? static_cast<uint32_t>(position) : size - 1;
  }
};

// The input range of one leaf: from its low to its high fence, limited to the sub-model's part of the key space.
struct LeafSpan {
  double low;
  double high;
};

// `leaves`: in order, at least one.
SubModel TrainSubModel(std::span<const LeafSpan> leaves);

// Quality of a model, summed over the leaves.
struct Quality {
  float lookup_leaves = 0;  // leaves that a lookup READs, averaged over the leaf's span
  float error = 0;          // distance between the predicted and the actual middle of the leaf, in leaves
  // XStore's error measure (OSDI'20; its published code, which averages it over the sub-models), for one sub-model: the
  // width of [min_err, max_err] over the keys. Positions are leaf * slots + slot, and a prediction within the right
  // leaf has no error.
  float range = 0;
};
Quality Judge(const SubModel& model, std::span<const LeafSpan> leaves);

}  // namespace gannet::index::xstore
