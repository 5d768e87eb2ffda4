// SPDX-License-Identifier: Apache-2.0

// Tests of the parsing of clients' addresses.

package serving

import "testing"

func TestWhereAClientConnectsFrom(t *testing.T) {
	for remote, want := range map[string][2]string{
		"10.0.0.1:40000":          {"10.0.0.1", "10.0.0.1/32"},
		"[::ffff:10.0.0.1]:40000": {"10.0.0.1", "10.0.0.1/32"},
		"[2001:db8::a:1]:40000":   {"2001:db8::a:1", "2001:db8::/64"},
		"[fe80::a:1%eth0]:40000":  {"fe80::a:1", "fe80::/64"},
		"pipe":                    {"invalid IP", "invalid Prefix"},
	} {
		got := originOf(remote)
		if got.address.String() != want[0] || got.network.String() != want[1] {
			t.Errorf("%s is %v in %v, want %s in %s", remote, got.address, got.network, want[0], want[1])
		}
	}
}
