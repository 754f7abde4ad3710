# A scene of Tachyon: a knotted tube of triangles over a mirror, awk -v rings=N -v sides=N -f torus.awk
function sine(x,    y) {
    while (x > 3.14159265) x -= 6.28318531
    y = x * x
    return x * (1 - y / 6 * (1 - y / 20 * (1 - y / 42 * (1 - y / 72 * (1 - y / 110 * (1 - y / 156))))))
}
function cosine(x) { return sine(x + 1.57079633) }
function point(i, j,    u, v, r) {
    u = 6.2831853 * i / rings
    v = 6.2831853 * j / sides
    r = 2 + 0.5 * cosine(3 * u)
    x = (r + 0.35 * cosine(v)) * cosine(2 * u)
    y = (r + 0.35 * cosine(v)) * sine(2 * u)
    z = 0.8 * sine(3 * u) + 0.35 * sine(v)
    return sprintf("%.5f %.5f %.5f", x, y, z)
}
BEGIN {
    print "BEGIN_SCENE"
    print "RESOLUTION " width " " height
    print "CAMERA"
    print "  ZOOM 1.4 ASPECTRATIO 1.0 ANTIALIASING 0 RAYDEPTH 6"
    print "  CENTER 0 -6 3.5 VIEWDIR 0 0.87 -0.5 UPDIR 0 0 1"
    print "END_CAMERA"
    print "LIGHT CENTER -4 -5 7 RAD 0.2 COLOR 1 1 0.9"
    print "LIGHT CENTER 5 -2 6 RAD 0.2 COLOR 0.4 0.4 0.6"
    print "TEXDEF tube AMBIENT 0.1 DIFFUSE 0.7 SPECULAR 0.2 OPACITY 1 COLOR 0.8 0.4 0.2 TEXFUNC 0"
    print "TEXDEF floor AMBIENT 0.1 DIFFUSE 0.5 SPECULAR 0.4 OPACITY 1 COLOR 0.5 0.6 0.5 TEXFUNC 0"
    print "PLANE CENTER 0 0 -1.3 NORMAL 0 0 1 floor"
    for (i = 0; i < rings; i++)
        for (j = 0; j < sides; j++)
            at[i, j] = point(i, j)
    for (i = 0; i < rings; i++)
        for (j = 0; j < sides; j++) {
            next_i = (i + 1) % rings
            next_j = (j + 1) % sides
            a = at[i, j]; b = at[next_i, j]; c = at[next_i, next_j]; d = at[i, next_j]
            print "TRI V0 " a " V1 " b " V2 " c " tube"
            print "TRI V0 " a " V1 " c " V2 " d " tube"
        }
    print "END_SCENE"
}
