# The case "lid-driven cavity" of OpenFOAM in the working folder: sh cavity.sh CELLS-A-SIDE END-TIME
mkdir 0 constant system
head() { echo "FoamFile { version 2.0; format ascii; class $1; object $2; }"; }
{ head dictionary blockMeshDict; cat <<END; } > system/blockMeshDict
scale 0.1;
vertices ((0 0 0) (1 0 0) (1 1 0) (0 1 0) (0 0 1) (1 0 1) (1 1 1) (0 1 1));
blocks (hex (0 1 2 3 4 5 6 7) ($1 $1 $1) simpleGrading (1 1 1));
edges ();
boundary
(
    lid { type wall; faces ((3 7 6 2)); }
    walls { type wall; faces ((0 4 7 3) (2 6 5 1) (1 5 4 0) (0 3 2 1) (4 5 6 7)); }
);
mergePatchPairs ();
END
{ head dictionary controlDict; cat <<END; } > system/controlDict
application icoFoam;
startFrom startTime;
startTime 0;
stopAt endTime;
endTime $2;
deltaT 0.002;
writeControl runTime;
writeInterval $2;
writeFormat ascii;
writePrecision 8;
timeFormat general;
END
sed -i 's/^deltaT 0.002;/deltaT 0.002;/' system/controlDict
{ head dictionary fvSchemes; cat <<END; } > system/fvSchemes
ddtSchemes { default Euler; }
gradSchemes { default Gauss linear; }
divSchemes { default none; div(phi,U) Gauss linear; }
laplacianSchemes { default Gauss linear orthogonal; }
interpolationSchemes { default linear; }
snGradSchemes { default orthogonal; }
END
{ head dictionary fvSolution; cat <<END; } > system/fvSolution
solvers
{
    p { solver PCG; preconditioner DIC; tolerance 1e-06; relTol 0.05; }
    pFinal { \$p; relTol 0; }
    U { solver smoothSolver; smoother symGaussSeidel; tolerance 1e-05; relTol 0; }
}
PISO { nCorrectors 2; nNonOrthogonalCorrectors 0; pRefCell 0; pRefValue 0; }
END
{ head dictionary transportProperties; echo "nu 0.01;"; } > constant/transportProperties
{ head volScalarField p; cat <<END; } > 0/p
dimensions [0 2 -2 0 0 0 0];
internalField uniform 0;
boundaryField { lid { type zeroGradient; } walls { type zeroGradient; } }
END
{ head volVectorField U; cat <<END; } > 0/U
dimensions [0 1 -1 0 0 0 0];
internalField uniform (0 0 0);
boundaryField { lid { type fixedValue; value uniform (1 0 0); } walls { type noSlip; } }
END
