/* Positions on packed axes, at most eight of them. */
typedef struct { $integer at[8]; } tc_positions;

/* Sort positions, the largest first; the sign of the permutation that sorts them, 0 if two are equal. */
$inline int tc_sort(int count, tc_positions *p)
{
    int sign = 1;
    for (int n = 1; n < count; ++n) {
        for (int m = n; m > 0 && p->at[m - 1] <= p->at[m]; --m) {
            const $integer held = p->at[m];
            if (p->at[m - 1] == held) {
                sign = 0;
                break;
            }
            p->at[m] = p->at[m - 1];
            p->at[m - 1] = held;
            sign = -sign;
        }
    }
    return sign;
}

/* Place of the values at some positions: antisymmetric axes (strict) store no equal positions. */
$inline $integer tc_simplex(int count, int strict, tc_positions p)
{
    $integer place = 0;
    tc_sort(count, &p);
    for (int n = 0; n < count; ++n) {
        $integer ways = p.at[n];
        for (int k = 1; k < count - n; ++k) ways = ways*(strict ? p.at[n] - k : p.at[n] + k)/(k + 1);
        place += ways;
    }
    return place;
}

/* Sign of the value of antisymmetric axes at some positions, 0 if two are equal. */
$inline int tc_parity(int count, tc_positions p) { return tc_sort(count, &p); }
