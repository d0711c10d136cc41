// Command quota refuses a build job that asks for more disk than is free.
//
//	quota /var/lib/runner 40G
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

const reserve = 0.2 // share of a volume that stays free whatever jobs ask for

// ParseSize reads sizes such as 512M or 1.5G; units are powers of 1024.
func ParseSize(text string) (uint64, error) {
	units := map[string]float64{"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
	trimmed := strings.TrimRight(strings.ToUpper(strings.TrimSpace(text)), "KMGT")
	unit := strings.ToUpper(strings.TrimSpace(text))[len(trimmed):]
	factor, known := units[unit]
	number, err := strconv.ParseFloat(trimmed, 64)
	if err != nil || !known || number < 0 {
		return 0, fmt.Errorf("not a size: %q", text)
	}
	return uint64(number * factor), nil
}

// Admit says whether a job fits on the volume that holds path, with the reserve kept.
func Admit(path string, wanted uint64) (bool, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(path, &stat); err != nil {
		return false, err
	}
	size := uint64(stat.Bsize)
	free, total := stat.Bavail*size, stat.Blocks*size
	return float64(free)-float64(wanted) >= reserve*float64(total), nil
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: quota PATH SIZE")
		os.Exit(2)
	}
	wanted, err := ParseSize(os.Args[2])
	if err == nil {
		var fits bool
		if fits, err = Admit(os.Args[1], wanted); err == nil && fits {
			return
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	fmt.Fprintln(os.Stderr, "not enough free space for this job")
	os.Exit(1)
}
