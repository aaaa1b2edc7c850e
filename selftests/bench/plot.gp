# SPDX-License-Identifier: GPL-2.0
# The picture of make bench:  gnuplot -e "dir='build/bench'; title='...'" plot.gp
set terminal svg size 1000,440 noenhanced font "sans-serif,13" background "#ffffff"
set output dir."/bench.svg"
set multiplot layout 1,2 title title font ",14"
set border 3 lw 1.2 lc "#555555"
set tics nomirror out
set grid lc "#dddddd" lt 1
set key top left reverse Left samplen 2
set linetype 1 lc "#c4314b" lw 2.5 pt 7 ps 0.6
set linetype 2 lc "#2f6fb0" lw 2.5 pt 5 ps 0.5
set linetype 3 lc "#6b8e23" lw 2.5 pt 9 ps 0.7
set linetype 4 lc "#8a6db1" lw 2.5 pt 13 ps 0.7

# Bandwidth over message size.  One peer is three columns: median, least, most.
bandwidth = dir."/bandwidth.dat"
stats bandwidth skip 1 nooutput
peers = (STATS_columns - 1) / 3
set title "Bandwidth, path MTU 4096"
set xlabel "message size"
set ylabel "MB/s"
set logscale x 2
set logscale y
set xtics ("64 B" 64, "1 KiB" 1024, "16 KiB" 16384, "256 KiB" 262144, "4 MiB" 4194304)
set xrange [48:5.6e6]
plot for [i = 0:peers - 1] bandwidth using 1:3*i+2:3*i+3:3*i+4 skip 1 with yerrorbars lt i+1 lw 1 ps 0 notitle, \
     for [i = 0:peers - 1] bandwidth using 1:3*i+2 with linespoints lt i+1 title columnheader(3*i+2)

# Latency over percentile: x is 1 / (1 - p)
latency = dir."/latency.dat"
stats latency using 1:2 nooutput
set title "Latency, 8-byte WRITE, polling (TCP: 14 bytes)"
set xlabel "percentile"
set ylabel "us, half a round trip"
unset logscale x
set logscale x 10
set xtics ("0" 1, "50" 2, "90" 10, "99" 100, "99.9" 1000)
set xrange [1:1000]
plot for [i = 0:peers - 1] latency index i using 1:2 with lines lt i+1 title columnheader(1)
unset multiplot
