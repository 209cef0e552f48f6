// Statistics of few, noisy values: medians, and intervals that assume no distribution.
#pragma once

#include <cstdint>
#include <vector>

namespace cairn::tune {

double median(std::vector<double> values);  // 0 of none
// Median distance from the median, scaled to what the standard deviation would be if the values were normal; 0 of fewer than two.
double spread(const std::vector<double>& values);

struct Interval {
    double low = 0, high = 0;
    bool known = false;  // enough values for 95 %
};
// Of the median, 95 % at least, by order statistics: exact for any distribution. Below six values there is none.
Interval median_interval(std::vector<double> values);

}  // namespace cairn::tune
