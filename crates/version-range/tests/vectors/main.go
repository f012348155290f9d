// Writes constraints.json: the results of Masterminds/semver for each constraint.
// In a module that requires github.com/Masterminds/semver/v3 v3.5.0: go run main.go > constraints.json
package main

import (
	"encoding/json"
	"os"

	"github.com/Masterminds/semver/v3"
)

func main() {
	versions := []string{
		"0.0.0", "0.0.1", "0.0.3", "0.0.4", "0.1.0", "0.2.0", "0.2.3", "0.2.9", "0.3.0", "1.0.0-rc.1", "1.0.0", "1.1.9",
		"1.2.0-alpha.1", "1.2.0", "1.2.3-beta", "1.2.3", "1.2.4", "1.3.0-rc.1", "1.3.0", "1.10.0", "2.0.0-rc.1", "2.0.0", "2.4.5", "3.0.0",
		"11.0.0", "11.1.0", "12.0.0",
	}
	var constraints []string
	operands := []string{
		"0", "0.0", "0.2", "0.0.3", "0.2.3", "1", "1.x", "1.2", "1.2.x", "1.2.X", "1.2.*", "1.2.3", "v1.2.3", "1.2.3-beta", "01.2", "2", "11",
		"11.0",
	}
	for _, operator := range []string{"", "=", "!=", "<", "<=", "=<", ">", ">=", "=>", "~", "~>", "^"} {
		for _, operand := range operands {
			constraints = append(constraints, operator+operand)
		}
	}
	constraints = append(constraints,
		"*", "x", ">=*", "~*", ">=1.2 <2", ">=1.2, <2", ">=1.2,<2", ">= 1.2 , < 2", " >=1.2   <2 ", "<1 || >=2", "<1||>=2", "1.2 - 1.3.0", "1.2.0 - 2",
		"1.2 - 1.3 || 11", ">=1.0.0-0 <2.0.0", ">=1.0.0-0, <2.0.0-0", ">1.0.0 !=1.2.3", "~1.2.0-0", "^1.0.0-0", "1.2.3 1.2.4", "!=1.2.x, >=1",
		"0.x", "^0.x", "<2-0", ">=1.2-alpha",
		"", " ", "||", ">=1 ||", ",1", "1,", "1,,2", ">", ">=1<2", "a", ">=a", "<>1", "==1", "1..2", "1.2.3.4", ">1.2.", "!1.2.3", "1.2.3-", "1.2 -1.3", "1 - ",
		"- 1", "latest",
	)
	held := map[string][]string{}
	for _, text := range constraints {
		constraint, err := semver.NewConstraint(text)
		if err != nil {
			held[text] = nil
			continue
		}
		held[text] = []string{}
		for _, version := range versions {
			if constraint.Check(semver.MustParse(version)) {
				held[text] = append(held[text], version)
			}
		}
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	_ = encoder.Encode(map[string]any{"versions": versions, "constraints": held})
}
