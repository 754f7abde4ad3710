# Points around random centres, as comma-separated values: awk -v points=N -v dimensions=N -v centres=N -f clusters.awk
function random() { state = (state * 16807) % 2147483647; return state / 2147483647 }
BEGIN {
    state = 20170601
    for (c = 0; c < centres; c++)
        for (d = 0; d < dimensions; d++)
            centre[c, d] = random()
    for (p = 0; p < points; p++) {
        c = p % centres
        line = int(10000 * (centre[c, 0] + 0.4 * random()))
        for (d = 1; d < dimensions; d++)
            line = line "," int(10000 * (centre[c, d] + 0.4 * random()))
        print line
    }
}
