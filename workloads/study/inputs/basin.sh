# A basin of shallow water with a hill in it, as a case of OpenFOAM in the working folder: sh basin.sh CELLS-A-SIDE END-TIME
mkdir 0 constant system
head() { echo "FoamFile { version 2.0; format ascii; class $1; object $2; }"; }
{ head dictionary blockMeshDict; cat <<END; } > system/blockMeshDict
scale 1000;
vertices ((0 0 0) (100 0 0) (100 100 0) (0 100 0) (0 0 1) (100 0 1) (100 100 1) (0 100 1));
blocks (hex (0 1 2 3 4 5 6 7) ($1 $1 1) simpleGrading (1 1 1));
edges ();
boundary
(
    sides { type patch; faces ((0 4 7 3) (2 6 5 1) (1 5 4 0) (3 7 6 2)); }
    frontAndBack { type empty; faces ((0 3 2 1) (4 5 6 7)); }
);
mergePatchPairs ();
END
{ head dictionary controlDict; cat <<END; } > system/controlDict
application shallowWaterFoam;
startFrom startTime;
startTime 0;
stopAt endTime;
endTime $2;
deltaT 10;
writeControl runTime;
writeInterval $2;
writeFormat ascii;
writePrecision 8;
timeFormat general;
END
{ head dictionary fvSchemes; cat <<END; } > system/fvSchemes
ddtSchemes { default CrankNicolson 0.9; }
gradSchemes { default Gauss linear; }
divSchemes { default none; div(phiv,hU) Gauss linear; div(phi,U) Gauss linear; }
laplacianSchemes { default Gauss linear uncorrected; }
interpolationSchemes { default linear; }
snGradSchemes { default uncorrected; }
END
{ head dictionary fvSolution; cat <<END; } > system/fvSolution
solvers
{
    "h.*" { solver PCG; preconditioner DIC; tolerance 1e-6; relTol 0.01; }
    hFinal { \$h; tolerance 1e-6; relTol 0; }
    "hU.*" { solver PBiCGStab; preconditioner DILU; tolerance 1e-6; relTol 0.1; }
    hUFinal { \$hU; tolerance 1e-6; relTol 0; }
}
PIMPLE { nOuterCorrectors 3; nCorrectors 1; nNonOrthogonalCorrectors 0; momentumPredictor yes; }
END
{ head dictionary gravitationalProperties; cat <<END; } > constant/gravitationalProperties
g [0 1 -2 0 0 0 0] (0 0 -9.81);
rotating true;
Omega [0 0 -1 0 0 0 0] (0 0 7.292e-5);
END
# The bottom is a plane with a square hill; the water's surface is level but for a square hump.
field() {
    awk -v n="$1" -v what="$2" 'BEGIN {
        print n * n; print "("
        for (j = 0; j < n; j++)
            for (i = 0; i < n; i++) {
                x = i / n; y = j / n
                bottom = x > 0.45 && x < 0.65 && y > 0.4 && y < 0.6 ? 40 : 0
                surface = x > 0.1 && x < 0.3 && y > 0.2 && y < 0.5 ? 105 : 100
                print what == "bottom" ? bottom : surface - bottom
            }
        print ")"
    }'
}
{ head volScalarField h; echo "dimensions [0 1 0 0 0 0 0];"; echo "internalField nonuniform List<scalar>"; field $1 depth
  echo "; boundaryField { sides { type zeroGradient; } frontAndBack { type empty; } }"; } > 0/h
{ head volScalarField h0; echo "dimensions [0 1 0 0 0 0 0];"; echo "internalField nonuniform List<scalar>"; field $1 bottom
  echo "; boundaryField { sides { type zeroGradient; } frontAndBack { type empty; } }"; } > 0/h0
{ head volVectorField hU; cat <<END; } > 0/hU
dimensions [0 2 -1 0 0 0 0];
internalField uniform (1 0 0);
boundaryField { sides { type slip; } frontAndBack { type empty; } }
END
