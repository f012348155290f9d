# The addresses of a cluster, by IP family (4 or 6). The scripts of this folder source it.

families() {
  case $E2E_IP_FAMILY in
  ipv4) echo 4 ;;
  dual) echo 4 6 ;;
  ipv6) echo 6 ;;
  esac
}

has_family() { # FAMILY
  case " $(families) " in
  *" $1 "*) echo true ;;
  *) echo false ;;
  esac
}

first_family() {
  local all
  all=$(families)
  echo "${all%% *}"
}

# FUNCTION [ARGUMENT…]: calls FUNCTION FAMILY ARGUMENT… for each family.
for_families() {
  local family
  for family in $(families); do
    "$1" "$family" "${@:2}"
  done
}

# FAMILY NUMBER
node_address() {
  case $1 in
  4) echo "192.168.88.$2" ;;
  6) echo "fd00:88::$2" ;;
  esac
}

# FAMILY NUMBER
service_address() {
  case $1 in
  4) echo "10.96.0.$2" ;;
  6) echo "fd00:96::$2" ;;
  esac
}

# FAMILY NODE: the network of the node's pods.
pod_network() {
  case $1 in
  4) echo "10.244.$2.0/24" ;;
  6) echo "fd00:244:0:$2::/64" ;;
  esac
}

# services|pods|nodes FAMILY
network() {
  case $1-$2 in
  services-4) echo 10.96.0.0/16 ;;
  services-6) echo fd00:96::/112 ;;
  pods-4) echo 10.244.0.0/16 ;;
  pods-6) echo fd00:244::/48 ;;
  nodes-4) echo 192.168.88.0/24 ;;
  nodes-6) echo fd00:88::/64 ;;
  esac
}

# services|pods: the networks of all families, separated by commas.
networks() {
  local family all=
  for family in $(families); do
    all+=${all:+,}$(network "$1" "$family")
  done
  echo "$all"
}

# Lets this network namespace forward packets.
set_forwarding() {
  echo 1 >/proc/sys/net/ipv4/ip_forward
  if [ -e /proc/sys/net/ipv6 ]; then
    echo 1 >/proc/sys/net/ipv6/conf/all/forwarding
  fi
}
